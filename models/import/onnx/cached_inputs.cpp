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
  caches_.push_back({input, how.output, how.dim, state, state.slice(how.dim, 0, shape[how.dim].unnamed())});
  return caches_.back().past;
}

void CachedInputs::rewrite(importing::Results& results) {
  for (importing::Value& result : results) {
    const Tensor* const tensor = result.computed();
    if (!tensor) continue;
    const ir::Value value = tensor->value();
    const ir::Node node = value.node();  // a copy, because new ops move the nodes
    if (node.op->name.value != "concat" || node.operands.size() != 2) continue;
    for (Cache& cache : caches_) {
      if (!cache.joined.is_empty() || node.operands[0] != cache.past.value().id()) continue;
      const Tensor rows(ir::Value(value.builder(), node.operands[1]));
      const Dim past = cache.past.size(cache.dim).unnamed(), added = rows.size(cache.dim).unnamed();
      if (tensor->size(cache.dim) != past + added) continue;  // joined along another dim
      const Graph graph = rows.graph();
      const Tensor positions = graph.arange(added, i64) + graph.dim_value(past);
      const Tensor updated = update_rows(cache.state, positions, rows, cache.dim);
      graph.update(cache.state, updated);
      cache.joined = updated.slice(cache.dim, 0, past + added);
      result = cache.joined;
      break;
    }
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
  for (const auto& [input, how] : options_.caches)
    if (std::ranges::none_of(caches_, [&](const Cache& cache) { return cache.input == input && cache.has_output; }))
      throw UserError(fmt::format("{} has no input '{}' with an output '{}'", file_, input, how.output),
                      "argument_unknown");
}

}  // namespace lathe::onnx
