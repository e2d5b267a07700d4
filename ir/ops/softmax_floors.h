#pragma once

#include <limits>

#include "ir/support/dtype.h"

/// What the expansion of a softmax with `zero_masked` keeps from falling further, so that a row of nothing but -inf
/// gives exp(-inf - lowest) / 0.5 = 0. Neither changes a bit of any other row, nor its gradient: the maximum of a row
/// is the lowest finite number at least, and of the exponentials that are summed one is 1.
namespace lathe::ir {

inline constexpr double least_softmax_sum = 0.5;

/// By the dtype that the softmax is computed in, f32 or f64.
inline double least_softmax_maximum(DType compute) {
  return compute == f64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
}

}  // namespace lathe::ir
