#include "frontend/nn/feed_forward.h"

#include "frontend/ops/ops.h"

namespace lathe::nn {

Tensor activate(Activation activation, const Tensor& x, Where at) {
  const CallSite line(x, at);
  switch (activation) {
    case Activation::relu: return relu(x);
    case Activation::gelu: return gelu(x, false);
    case Activation::gelu_tanh: return gelu(x, true);
    case Activation::silu: return silu(x);
    case Activation::tanh: return tanh(x);
    case Activation::quick_gelu: return x * sigmoid(x * 1.702);
    case Activation::relu_squared: return square(relu(x));
    case Activation::relu6: return clamp(x, 0, 6);
    case Activation::leaky_relu: return where(x > 0, x, x * 0.01);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::mish: return x * tanh(softplus(x));
    case Activation::linear: return x;
  }
  throw InternalError("an activation out of range");
}

FeedForward::FeedForward(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
                         const FeedForwardOptions& options, Where at)
    : Module(parent, name, "FeedForward", options.dtype),
      activation_(options.activation),
      up_(*this, options.up, d, d_ff, {.bias = options.bias, .in_out = options.in_out, .weight = options.up_init},
          at),
      down_(*this, options.down, d_ff, d,
            {.bias = options.bias, .in_out = options.in_out, .weight = options.down_init}, at),
      dropout_(options.dropout, at) {}

Tensor FeedForward::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  return down_(dropout_(activate(activation_, up_(x))));  // [.., d_ff] -> [.., d]
}

namespace {
LinearOptions layer(const GatedFeedForwardOptions& options) { return {.bias = options.bias, .flat = options.flat}; }

std::optional<Linear> layer_if(bool wanted, const Module& parent, std::string_view name, const Dim& in,
                               const Dim& out, const GatedFeedForwardOptions& options, const Where& at) {
  return wanted ? std::optional(Linear(parent, name, in, out, layer(options), at)) : std::nullopt;
}
}  // namespace

GatedFeedForward::GatedFeedForward(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
                                   const GatedFeedForwardOptions& options, Where at)
    : Module(parent, name, "GatedFeedForward", options.dtype),
      activation_(options.activation),
      d_ff_(d_ff),
      stacked_(layer_if(options.stacked, *this, "gate_up_proj", d, d_ff * 2, options, at)),
      gate_(layer_if(!options.stacked, *this, options.gate, d, d_ff, options, at)),
      up_(layer_if(!options.stacked, *this, options.up, d, d_ff, options, at)),
      down_(*this, options.down, d_ff, d, layer(options), at) {}

Tensor GatedFeedForward::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  if (!stacked_) return down_(activate(activation_, (*gate_)(x)) * (*up_)(x));  // [.., d]
  const Tensor both = (*stacked_)(x);                                           // [.., 2*d_ff]
  return down_(activate(activation_, both.slice(-1, 0, d_ff_)) * both.slice(-1, d_ff_, d_ff_ * 2));
}

}  // namespace lathe::nn
