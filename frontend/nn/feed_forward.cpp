#include "frontend/nn/feed_forward.h"

#include <fmt/core.h>

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

FeedForward::FeedForward(Graph& g, std::string_view name, const Dim& d, const Dim& d_ff,
                         const FeedForwardOptions& options, Where at)
    : path_(g.path(name)),
      activation_(options.activation),
      up_(g, fmt::format("{}.{}", name, options.up), d, d_ff,
          {.dtype = options.dtype, .bias = options.bias, .in_out = options.in_out, .weight = options.up_init}, at),
      down_(g, fmt::format("{}.{}", name, options.down), d_ff, d,
            {.dtype = options.dtype, .bias = options.bias, .in_out = options.in_out, .weight = options.down_init},
            at),
      dropout_(g, options.dropout, at) {}

Tensor FeedForward::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path_);
  return down_(dropout_(activate(activation_, up_(x))));  // [.., d_ff] -> [.., d]
}

namespace {
LinearOptions flat(DType dtype) { return {.dtype = dtype, .bias = false, .flat = true}; }
}  // namespace

SwiGlu::SwiGlu(Graph& g, const Dim& d, const Dim& d_ff, DType dtype, Where at)
    : path_(g.scope_path()),
      gate_(g, "gate_proj", d, d_ff, flat(dtype), at),
      up_(g, "up_proj", d, d_ff, flat(dtype), at),
      down_(g, "down_proj", d_ff, d, flat(dtype), at) {}

Tensor SwiGlu::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path_);
  return down_(silu(gate_(x)) * up_(x));  // [.., d]
}

}  // namespace lathe::nn
