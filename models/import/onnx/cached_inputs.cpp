#include "models/import/onnx/cached_inputs.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"

namespace lathe::onnx {

Tensor CachedInputs::add(const Graph& graph, const std::string& input, DType dtype, const Shape& shape) {
  const importing::CachedInput& how = options_.caches.at(input);
  if (how.dim < 0 || how.dim >= shape.rank())
    throw UserError(fmt::format("{}: the input '{}' has no dim {}", file_, input, how.dim), "argument_shape");
  Shape rows = shape;
  rows.set(how.dim, options_.capacity);
  const Tensor state = graph.state(input + "_cache", dtype, rows);
  const Tensor before = options_.parents.empty() ? state : of_parents(graph, input, state);
  caches_.push_back({.input = input,
                     .output = how.output,
                     .dim = how.dim,
                     .state = state,
                     .before = before,
                     .past = before.slice(how.dim, 0, shape[how.dim].unnamed())});
  return caches_.back().past;
}

Tensor CachedInputs::of_parents(const Graph& graph, const std::string& input, const Tensor& state) {
  if (options_.caches.at(input).dim == 0)
    throw UserError(fmt::format("{}: the input '{}' joins new rows along its batch", file_, input), "argument_shape",
                    "cached rows of other sequences need a batch as dim 0");
  const Dim batch = state.size(0).unnamed();
  if (parents_.is_empty()) parents_ = graph.input(options_.parents, i64, {batch});
  if (parents_.size(0) != batch)
    throw UserError(fmt::format("{}: the input '{}' has a batch of {}, and others have {}", file_, input,
                                batch.to_string(), parents_.size(0).to_string()),
                    "argument_shape", "all caches have the same batch");
  return gather(state, parents_, 0);
}

bool CachedInputs::contains(const Tensor& past) const {
  return std::ranges::any_of(caches_, [&](const Cache& cache) { return is_past(cache, past); });
}

bool CachedInputs::is_past(const Cache& cache, const Tensor& past) {
  return &past.builder() == &cache.past.builder() && past.value().id() == cache.past.value().id();
}

std::optional<Tensor> CachedInputs::join(const Tensor& past, const Tensor& rows, int dim) {
  for (Cache& cache : caches_) {
    if (!is_past(cache, past) || !cache.joined.is_empty() || dim != cache.dim) continue;
    const Dim before = past.size(dim).unnamed(), added = rows.size(dim).unnamed();
    const Graph graph = rows.graph();
    const Tensor positions = graph.arange(added, i64) + graph.dim_value(before);
    const Tensor updated = update_rows(cache.before, positions, rows, dim);
    graph.update(cache.state, updated);
    cache.joined = updated.slice(dim, 0, before + added);
    return cache.joined;
  }
  return std::nullopt;
}

void CachedInputs::rewrite(importing::Results& results) {
  for (importing::Value& result : results) {
    const Tensor* const tensor = result.computed();
    if (!tensor) continue;
    const ir::Value value = tensor->value();
    const ir::Node node = value.node();  // a copy, because new ops move the nodes
    if (node.op->name.value != "concat" || node.operands.size() != 2) continue;
    const Tensor past(ir::Value(value.builder(), node.operands[0])),
        rows(ir::Value(value.builder(), node.operands[1]));
    if (const std::optional<Tensor> all = join(past, rows, static_cast<int>(node.attrs.get<std::int64_t>("dim"))))
      result = *all;
  }
}

bool CachedInputs::is_output(std::string_view output, const Tensor& value) const {
  for (const Cache& cache : caches_) {
    if (cache.output != output) continue;
    if (cache.joined.is_empty() || cache.joined.value().id() != value.value().id())
      throw UserError(fmt::format("{}: the output '{}' is not the input '{}', joined with new rows along dim {}",
                                  file_, output, cache.input, cache.dim),
                      "import_unsupported", "only caches that grow along one dim become states");
    cache.has_output = true;
    return true;
  }
  return false;
}

void CachedInputs::require_outputs() const {
  if (!options_.parents.empty() && parents_.is_empty())
    throw UserError(
        fmt::format("{}: '{}' are parents of cached rows, and no input has such rows", file_, options_.parents),
        "argument_unknown", "name the inputs of past keys and values as caches");
  for (const auto& [input, how] : options_.caches)
    if (std::ranges::none_of(caches_, [&](const Cache& cache) { return cache.input == input && cache.has_output; }))
      throw UserError(fmt::format("{} has no input '{}' with an output '{}'", file_, input, how.output),
                      "argument_unknown");
}

}  // namespace lathe::onnx
