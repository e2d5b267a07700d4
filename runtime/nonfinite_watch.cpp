#include "runtime/nonfinite_watch.h"

#include <algorithm>
#include <utility>

#include "ir/tensor/binding.h"
#include "ir/tensor/op/op.h"
#include "passes/check/find_nonfinite.h"
#include "runtime/files/finite.h"

namespace lathe {

namespace {

/// Returns options for instrumented graphs: on the same target, without what belongs to one executable.
CompileOptions instrumented_options(const CompileOptions& options) {
  return {.target = options.target,
          .share_states = true,
          .sizes = options.sizes,
          .threads = options.threads,
          .lower = {.attention = options.lower.attention}};
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

void NonfiniteWatch::check(const Parameters& parameters, std::span<const TensorView> outputs,
                           const std::function<Tensors(std::span<const std::string>)>& inputs,
                           const DimBindings& dims) const {
  if (is_skipped_step(outputs) || is_finite(parameters, outputs)) return;
  Parameters current = parameters, before = parameters.borrowed();
  for (const auto& [name, value] : kept_) {
    current.set(name, value);
    before.set(name, value);
  }
  const Tensors given = inputs(inputs_);
  ir::throw_nonfinite(
      graph_, ir::find_nonfinite(graph_, [&](const ir::Graph& graph) { return run(graph, before, given, dims); }));
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
