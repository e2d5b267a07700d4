#include "frontend/nn/attention/positions.h"

#include <fmt/core.h>

#include <cmath>

#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

/// Returns d / 2 of a dim that is known and even.
Dim half_of(const ir::GraphBuilder& builder, const Dim& d, const Where& at) {
  const auto half = d.divided_by(2);
  if (!half || !d.value())
    throw UserError(detail::line_of(builder, at), "positions",
                    fmt::format("{} is not a known even size", d.to_string()), "positions_even",
                    "sine and cosine take turns: give an even number");
  return Dim("half", *half);
}

/// base^(-2i/d) for i = 0 .. d/2-1, in f64: [half]
Tensor frequencies(const Graph& g, const Dim& d, double base, const Where& at) {
  const double step = -2.0 * std::log(base) / static_cast<double>(d.number());
  return exp(g.arange(half_of(g.builder(), d, at), f64) * step);
}

/// pos * frequency: [n, half]
Tensor angles(const Graph& g, const Dim& n, const Dim& d, double base, const Where& at) {
  return g.arange(n, f64).unsqueeze(1) * frequencies(g, d, base, at);
}

}  // namespace

Tensor sinusoidal_positions(const Graph& g, const Dim& n, const Dim& d, DType dtype, Where at) {
  half_of(g.builder(at), d, at);
  const CallSite line(g.builder(), at);
  const Tensor angle = angles(g, n, d, 10000, at);                       // [n, half]
  return stack({sin(angle), cos(angle)}, -1).reshape({n, d}).to(dtype);  // [n, half, 2] -> [n, d]
}

Tensor rotary_frequencies(const Graph& g, const Dim& d, double theta, Where at) {
  half_of(g.builder(at), d, at);
  const CallSite line(g.builder(), at);
  return frequencies(g, d, theta, at);
}

RotaryTables rotary_tables(const Graph& g, const Dim& n, const Dim& d, DType dtype, double theta, Where at) {
  half_of(g.builder(at), d, at);
  const CallSite line(g.builder(), at);
  const Tensor angle = angles(g, n, d, theta, at);  // [n, half]
  const auto twice = [&](const Tensor& half) { return stack({half, half}, 1).reshape({n, d}); };
  return {twice(cos(angle).to(dtype)), twice(sin(angle).to(dtype))};  // [n, 2, half] -> [n, d]
}

Tensor rotary_phases(const Graph& g, const Tensor& positions, const Dim& d, DType dtype, double theta, Where at) {
  half_of(g.builder(at), d, at);
  const CallSite line(g.builder(), at);
  const Tensor angle = (positions.to(f64).unsqueeze(-1) * frequencies(g, d, theta, at)).to(dtype);  // [B, S, half]
  return polar(g.full(angle.shape(), 1, dtype), angle).unsqueeze(1);                                // [B, 1, S, half]
}

Tensor rotate_pairs(const Tensor& x, const Tensor& phases, Where at) {
  const CallSite line(x, at);
  const Dim d = x.size(-1), half = half_of(x.builder(), d, at);
  const Tensor pairs = x.reshape({x.size(0), x.size(1), x.size(2), half, 2}).contiguous();  // [B, h, S, half, 2]
  return view_as_real(view_as_complex(pairs) * phases).reshape(x.shape());                  // [B, h, S, d]
}

}  // namespace lathe::nn
