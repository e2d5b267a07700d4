#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"

namespace lathe::nn {

enum class Activation {
  relu,
  gelu,
  gelu_tanh,
  silu,
  tanh,
  quick_gelu,    ///< x sigmoid(1.702 x) (Hendrycks and Gimpel 2016)
  relu_squared,  ///< relu(x)^2 (So et al. 2021)
  relu6,         ///< min(relu(x), 6)
  leaky_relu,    ///< x if it is positive, else x / 100
  sigmoid,
  mish,  ///< x tanh(softplus(x)) (Misra 2020)
  linear,
};
/// Applies an activation to each element.
Tensor activate(Activation activation, const Tensor& x, Where at = Where::current());

struct FeedForwardOptions {
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
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

struct GatedFeedForwardOptions {
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
  Activation activation = Activation::silu;
  bool bias = false;
  bool flat = false;     ///< weights are named after their layers: "gate_proj" instead of "gate_proj.weight"
  bool stacked = false;  ///< one layer "gate_up_proj" computes both, the gate first
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
};

/// down(activation(gate(x)) * up(x)) (Shazeer 2020): [.., d] -> [.., d_ff] -> [.., d].
class GatedFeedForward : public Module {
 public:
  GatedFeedForward(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
                   const GatedFeedForwardOptions& options = {}, Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

  Activation activation() const { return activation_; }
  // The layers; no gate and up if they are stacked.
  const std::optional<Linear>& gate() const { return gate_; }
  const std::optional<Linear>& up() const { return up_; }
  const Linear& down() const { return down_; }

 private:
  Activation activation_;
  Dim d_ff_;
  std::optional<Linear> stacked_, gate_, up_;
  Linear down_;
};

}  // namespace lathe::nn
