#pragma once

#include "models/import/pt2/ops/aten_functions.h"

namespace lathe::pt2 {

/// Returns the matrix product. Products of integers are computed in f64, exactly below 2^53.
inline Tensor product_of(const Tensor& a, const Tensor& b) {
  if (is_float(a.dtype()) || is_complex(a.dtype())) return matmul(a, b);
  return matmul(a.to(f64), b.to(f64)).to(a.dtype());
}

}  // namespace lathe::pt2
