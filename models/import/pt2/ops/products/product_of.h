#pragma once

#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/signal/complex_signals.h"

namespace lathe::pt2 {

/// Returns the products of elements; those of bytes wrap, and those of bools are both.
inline Tensor elementwise_product(const Tensor& a, const Tensor& b) {
  if (a.dtype() == boolean && b.dtype() == boolean) return a & b;
  return widened([](const Tensor& x, const Tensor& y) { return x * y; }, a, b);
}

/// Returns the matrix product. Products of integers are computed in f64, exactly below 2^53.
inline Tensor product_of(const Tensor& a, const Tensor& b) {
  const auto product = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
  if (is_complex(a.dtype()) && is_complex(b.dtype())) return complex_product(a, b, product);
  if (is_float(a.dtype())) return matmul(a, b);
  return matmul(a.to(f64), b.to(f64)).to(a.dtype());
}

}  // namespace lathe::pt2
