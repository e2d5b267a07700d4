#include "frontend/nn/feed_forward.h"

#include "frontend/ops.h"

namespace lathe::nn {

Tensor activate(Activation activation, const Tensor& x, Where at) {
  switch (activation) {
    case Activation::relu: return relu(x, at);
    case Activation::gelu: return gelu(x, false, at);
    case Activation::gelu_tanh: return gelu(x, true, at);
    case Activation::silu: return silu(x, at);
  }
  throw InternalError("an activation out of range");
}

FeedForward::FeedForward(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
                         const FeedForwardOptions& options, Where at)
    : Module(parent, name, "FeedForward"),
      activation_(options.activation),
      up_(*this, options.up, d, d_ff,
          {.dtype = options.dtype, .bias = options.bias, .in_out = options.in_out, .weight = options.up_init}, at),
      down_(*this, options.down, d_ff, d,
            {.dtype = options.dtype, .bias = options.bias, .in_out = options.in_out, .weight = options.down_init},
            at),
      dropout_(options.dropout, at) {}

Tensor FeedForward::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  return down_(dropout_(activate(activation_, up_(x))));  // [.., d_ff] -> [.., d]
}

namespace {
LinearOptions flat(DType dtype) { return {.dtype = dtype, .bias = false, .flat = true}; }
}  // namespace

SwiGlu::SwiGlu(const Module& parent, const Dim& d, const Dim& d_ff, DType dtype, Where at)
    : Module(parent, "", "SwiGlu"),
      gate_(*this, "gate_proj", d, d_ff, flat(dtype), at),
      up_(*this, "up_proj", d, d_ff, flat(dtype), at),
      down_(*this, "down_proj", d_ff, d, flat(dtype), at) {}

Tensor SwiGlu::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  return down_(silu(gate_(x)) * up_(x));  // [.., d]
}

}  // namespace lathe::nn
