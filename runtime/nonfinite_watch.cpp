#include "runtime/nonfinite_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "ir/ops/collectives.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/op/op.h"
#include "passes/check/find_nonfinite.h"
#include "runtime/files/finite.h"
#include "runtime/ranks/agreement.h"

namespace lathe {

namespace {

/// Returns options for instrumented graphs: on the same target, without what belongs to one executable.
CompileOptions instrumented_options(const CompileOptions& options) {
  return {.target = options.target,
          .share_states = true,
          .sizes = options.sizes,
          .threads = options.threads,
          .lower = {.attention = options.lower.attention},
          .ranks = options.ranks};
}

bool is_skipped_step(std::span<const TensorView> outputs) {
  const auto found = std::ranges::find(outputs, "skipped", &TensorView::name);
  if (found == outputs.end() || count_elements(found->shape) != 1) return false;
  HostTensor one(found->dtype, {});
  std::copy_n(found->data, size_in_bytes(found->dtype), one.data());
  return one.get(0) != 0;
}

}  // namespace

NonfiniteWatch::NonfiniteWatch(ir::Graph graph, const CompileOptions& options)
    : graph_(std::move(graph)), options_(instrumented_options(options)) {
  for (const ir::ValueId id : graph_.arguments())
    if (graph_[id].op->name.value == "input") inputs_.push_back(graph_[id].name);
}

void NonfiniteWatch::keep(const Parameters& parameters) {
  for (const ir::Update& update : graph_.updates) {
    const std::string& name = graph_[update.state].name;
    if (parameters.contains(name)) kept_.insert_or_assign(name, parameters.get(name));
  }
}

bool NonfiniteWatch::is_finite(const Parameters& parameters, std::span<const TensorView> outputs) const {
  if (find_not_finite(outputs)) return false;
  std::vector<TensorView> states;
  for (const auto& [name, before] : kept_) states.push_back(view_of(name, parameters.get(name)));
  return !find_not_finite(states);
}

Tensors NonfiniteWatch::run(const ir::Graph& graph, const Parameters& values, const Tensors& inputs,
                            const DimBindings& dims) const {
  CompileOptions options = options_;
  options.parameters = values;
  DimBindings given;
  for (const std::string& name : ir::dims_without_argument(graph))
    if (const auto found = dims.find(name); found != dims.end()) given.insert(*found);
  return compile(graph, options).run(inputs, given);
}

/// Returns the error of the lowest rank whose own op makes a value that is not finite. Only if no rank has one, such
/// as for a sum over ranks that overflows, a collective is the origin.
UserError NonfiniteWatch::error_of_ranks(const ir::RunGraph& run) const {
  enum Claim { nothing, result, collective, own_op };
  Ranks& ranks = *options_.ranks;
  std::optional<ir::NonFinite> found = ir::count_nonfinite(graph_, run);
  const auto claim_of = [&](const ir::NonFinite& each) {
    if (!each.origin) return result;
    return ir::is_collective(*graph_[*each.origin].op) ? collective : own_op;
  };
  const std::vector<std::string> all =
      ranks.gather(fmt::format("{} {}", static_cast<int>(found ? claim_of(*found) : nothing),
                               found && found->origin ? found->origin->index : -1));
  int chosen = 0, best = -1, origin = -1;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const int claim = all[rank].front() - '0';
    if (claim <= best) continue;
    best = claim;
    chosen = static_cast<int>(rank);
    origin = std::stoi(all[rank].substr(2));
  }
  ir::NonFinite measured;
  if (origin >= 0) ir::measure_nonfinite(graph_, run, ir::ValueId{origin}, measured);
  const bool is_chosen = ranks.rank() == chosen;
  if (found && is_chosen) {
    found->range = measured.range;
    found->operands = measured.operands;
  }
  const std::string own = ir::to_string(found, graph_, fmt::format("on rank {} of {}", chosen, ranks.size()));
  return ir::nonfinite_error(ranks.gather(is_chosen ? own : "")[static_cast<std::size_t>(chosen)]);
}

std::optional<UserError> NonfiniteWatch::check(const Parameters& parameters, std::span<const TensorView> outputs,
                                               const std::function<Tensors(std::span<const std::string>)>& inputs,
                                               const DimBindings& dims) const {
  const bool fails = !is_skipped_step(outputs) && !is_finite(parameters, outputs);
  if (options_.ranks ? !any_of_ranks(*options_.ranks, fails) : !fails) return std::nullopt;
  Parameters current = parameters, before = parameters.borrowed();
  for (const auto& [name, value] : kept_) {
    current.set(name, value);
    before.set(name, value);
  }
  const Tensors given = inputs(inputs_);
  const ir::RunGraph run_before = [&](const ir::Graph& graph) { return run(graph, before, given, dims); };
  if (!options_.ranks) return ir::nonfinite_error(ir::to_string(ir::find_nonfinite(graph_, run_before), graph_));
  UserError error = error_of_ranks(run_before);
  wait_for_ranks(*options_.ranks);
  return error;
}

std::vector<TensorView> views_of(const Tensors& outputs, std::vector<HostTensor>&) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : outputs) views.push_back(view_of(name, tensor));
  return views;
}

std::vector<TensorView> views_of(const OutputRefs& outputs, std::vector<HostTensor>& copies) {
  std::vector<TensorView> views;
  copies.reserve(outputs.size());  // views refer to them
  for (const auto& [name, tensor] : outputs) {
    if (tensor.strides.empty() || is_row_major(tensor.shape, tensor.strides)) {
      views.push_back({.name = name, .dtype = tensor.dtype, .shape = tensor.shape, .data = tensor.data});
      continue;
    }
    HostTensor& copy = copies.emplace_back(tensor.dtype, tensor.shape);
    gather(ConstTensorRef(tensor.dtype, tensor.shape, tensor.data, tensor.strides), copy.data());
    views.push_back(view_of(name, copy));
  }
  return views;
}

}  // namespace lathe
