#include "models/import/ops/signal/fourier.h"

#include <cmath>
#include <numbers>

#include "frontend/ops/derived_ops.h"

namespace lathe::importing {

namespace {

/// cos and sin of 2 pi n k / length: [rows, columns].
struct Waves {
  Tensor cos, sin;
};
Waves waves_of(const Graph& graph, const Dim& rows, const Dim& columns, const Dim& length, DType dtype) {
  const Tensor numbers = graph.arange(rows, i64).unsqueeze(1) * graph.arange(columns, i64);
  // The remainder keeps the angle small, and so exact.
  const Tensor count = graph.dim_value(length);
  const Tensor angle = (numbers % count).to(f64) * (2 * std::numbers::pi) / count.to(f64);
  return {cos(angle).to(dtype), sin(angle).to(dtype)};
}

Tensor scaled(const Tensor& x, const Dim& length, FourierScale scale) {
  if (scale == FourierScale::none) return x;
  const Tensor count = x.graph().dim_value(length).to(f64);
  return x * reciprocal(scale == FourierScale::root ? sqrt(count) : count).to(x.dtype());
}

}  // namespace

Signal transformed(const Signal& x, const Dim& kept, const FourierOptions& options) {
  Waves waves = waves_of(x.real.graph(), options.length, kept, options.length, x.real.dtype());
  waves = {scaled(waves.cos, options.length, options.scale), scaled(waves.sin, options.length, options.scale)};
  if (options.is_inverse) waves.sin = -waves.sin;
  if (x.imaginary.is_empty()) return {matmul(x.real, waves.cos), -matmul(x.real, waves.sin)};
  return {matmul(x.real, waves.cos) + matmul(x.imaginary, waves.sin),
          matmul(x.imaginary, waves.cos) - matmul(x.real, waves.sin)};
}

Tensor real_inverse(const Signal& x, const Dim& length, FourierScale scale) {
  const Dim given = x.real.size(-1).unnamed();
  const Graph graph = x.real.graph();
  const Waves waves = waves_of(graph, given, length, length, x.real.dtype());
  const Tensor number = graph.arange(given, i64);
  const Tensor is_single = (number == 0) | (number * 2 == graph.dim_value(length));
  const Tensor weight = scaled(where(is_single, graph.constant(1, x.real.dtype()), 2), length, scale);
  const Tensor real = matmul(x.real * weight, waves.cos);
  return x.imaginary.is_empty() ? real : real - matmul(x.imaginary * weight, waves.sin);
}

Tensor with_length(const Tensor& x, std::int64_t size, std::int64_t length) {
  if (length < size) return x.slice(-1, 0, length);
  return length > size ? pad(x, -1, 0, length - size) : x;
}

}  // namespace lathe::importing
