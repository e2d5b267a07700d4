#pragma once

#include <string>
#include <string_view>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"

namespace lathe::nn {

enum class Activation { relu, gelu, gelu_tanh, silu };
Tensor activate(Activation activation, const Tensor& x, Where at = Where::current());

struct FeedForwardOptions {
  DType dtype = f32;
  Activation activation = Activation::relu;
  bool bias = true;
  bool in_out = false;                   ///< weights as [in, out]
  double dropout = 0;                    ///< of the hidden layer
  std::string up = "up", down = "down";  ///< names of the two layers
  Init up_init = Init::xavier_uniform(), down_init = Init::xavier_uniform();
};

/// down(activation(up(x))): [.., d] -> [.., d_ff] -> [.., d].
class FeedForward : public Module {
 public:
  FeedForward(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
              const FeedForwardOptions& options = {}, Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  Activation activation_;
  Linear up_, down_;
  Dropout dropout_;
};

/// down(silu(gate(x)) * up(x)), without biases (Shazeer 2020): [.., d] -> [.., d_ff] -> [.., d]. The weights are
/// "gate_proj", "up_proj" and "down_proj" of the parent.
class SwiGlu : public Module {
 public:
  SwiGlu(const Module& parent, const Dim& d, const Dim& d_ff, DType dtype = f32, Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  Linear gate_, up_, down_;
};

}  // namespace lathe::nn
