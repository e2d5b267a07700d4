#include "frontend/nn/stacked.h"

#include <map>
#include <string>

#include "frontend/initial_values.h"
#include "frontend/nn/require_option.h"
#include "frontend/nn/substitution.h"
#include "frontend/ops/loops/loops.h"

namespace lathe::nn {

namespace {

/// Returns the initializer of a stack whose elements start as `init` does.
Init stacked_init(const Init& init, const Shape& shape, std::int64_t layers) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.value().value_or(1));
  Init plain = resolved_init(init, sizes);
  const std::vector<double> list = plain.list;
  for (std::int64_t i = 1; i < layers; ++i) plain.list.insert(plain.list.end(), list.begin(), list.end());
  return plain;
}

}  // namespace

StackedModule::StackedModule(const Module& parent, std::string_view name, std::int64_t layers, const Where& at)
    : Module(parent, name, "Stacked"), layers_(layers) {
  require_option(at, "Stacked", "stacked_layers", layers >= 1, "layers", layers, "give 1 or more");
}

void StackedModule::declare_stacked(const Module& layer, const Where& at) {
  root_ = layer;
  for (const Parameter& parameter : layer.parameters()) {
    Shape shape{Dim(layers_)};
    for (const Dim& dim : parameter.shape()) shape.push_back(dim);
    parameters_.push_back({parameter, declare(parameter.name(), parameter.dtype(), shape,
                                              stacked_init(parameter.init(), parameter.shape(), layers_), at)});
  }
}

Tensor StackedModule::run(const Tensor& x, const std::function<Tensor(const Tensor&)>& layer, const Where& at) const {
  const Scope scope(*this, x, at);
  std::vector<Tensor> stacks;
  for (const Pair& pair : parameters_) stacks.push_back(pair.stacked.in(x, at));
  const ScanBody body = [&](std::span<const Tensor> state, std::span<const Tensor> elements) {
    std::map<std::string, Tensor> weights;
    for (std::size_t i = 0; i < parameters_.size(); ++i) weights.emplace(parameters_[i].of_layer.name(), elements[i]);
    const Substitution substitution(root_, weights, at);
    return LoopStep{{layer(state[0])}};
  };
  if (stacks.empty())
    return repeat(Dim(layers_), x, [&](const Tensor& h, const Tensor&) { return layer(h); }, {.name = "layer"}, at);
  return scan({x}, stacks, body, {.name = "layer"}, at).carries[0];
}

}  // namespace lathe::nn
