#pragma once

#include <limits>

#include "ir/support/dtype.h"

/// Lower bounds in the expansion of a softmax with `zero_masked`: a row of only -inf gives exp(-inf - lowest) / 0.5 =
/// 0. They do not change rows with a finite element or their gradients: the maximum is at least the lowest finite
/// number, and one of the summed exponentials is 1.
namespace lathe::ir {

inline constexpr double least_softmax_sum = 0.5;

/// `compute` is the dtype that the softmax is computed in, f32 or f64.
inline double least_softmax_maximum(DType compute) {
  return compute == f64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
}

}  // namespace lathe::ir
