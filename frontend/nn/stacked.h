#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/nn/module.h"

namespace lathe::nn {

/// The part of Stacked that does not depend on the kind of layer.
class StackedModule : public Module {
 public:
  std::int64_t layers() const { return layers_; }

 protected:
  /// Throws UserError [stacked_layers] for a number of layers below 1.
  StackedModule(const Module& parent, std::string_view name, std::int64_t layers, const Where& at);
  /// Declares the parameters of one layer, stacked.
  void declare_stacked(const Module& layer, const Where& at);
  Tensor run(const Tensor& x, const std::function<Tensor(const Tensor&)>& layer, const Where& at) const;

 private:
  struct Pair {
    Parameter of_layer, stacked;
  };
  std::int64_t layers_;
  Module root_;  // of the parameters of one layer
  std::vector<Pair> parameters_;
};

/// Identical layers, one after the other, as one loop: the IR, the time to compile and the code are those of one
/// layer. Each parameter of a layer is declared once, stacked along a new first dim of `layers`.
///
///   const auto make = [](const nn::Module& parent) { return nn::Linear(parent, "fc", 64, 64); };
///   const nn::Stacked<nn::Linear> layers(model, "h", 24, make);
///   const Tensor y = layers(x, [](const nn::Linear& fc, const Tensor& h) { return h + relu(fc(h)); });
///
/// The gradient computes attention, norms and other composites again from their operands.
template <class Layer>
class Stacked : public StackedModule {
 public:
  /// `make` creates a layer in the module it is given, which is apart from the tree of `parent`.
  Stacked(const Module& parent, std::string_view name, std::int64_t layers,
          const std::function<Layer(const Module&)>& make, Where at = Where::current())
      : Stacked(parent, name, layers, Module("Layer", parent.dtype()), make, at) {}

  /// Applies `forward` `layers` times. It returns a tensor of the dtype and shape of x.
  Tensor operator()(const Tensor& x, const std::function<Tensor(const Layer&, const Tensor&)>& forward,
                    Where at = Where::current()) const {
    return run(x, [&](const Tensor& h) { return forward(layer_, h); }, at);
  }
  /// The layer whose parameters are stacked.
  const Layer& layer() const { return layer_; }

 private:
  Stacked(const Module& parent, std::string_view name, std::int64_t layers, const Module& root,
          const std::function<Layer(const Module&)>& make, const Where& at)
      : StackedModule(parent, name, layers, at), layer_(make(root)) {
    declare_stacked(root, at);
  }

  Layer layer_;
};

}  // namespace lathe::nn
