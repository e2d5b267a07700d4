#pragma once

#include "frontend/tensor.h"

/// Special functions of floats, to about the last digit of f32. f32 and f64 are computed in f64, and bf16 and f16 in
/// f32.
namespace lathe::importing {

/// log(|gamma(x)|); infinite at 0, -1, ..
Tensor lgamma(const Tensor& a);
/// The derivative of log(gamma(x)): -inf at 0, NaN at -1, -2, ..
Tensor digamma(const Tensor& a);
/// The derivative of digamma of an order from 1 to most_polygamma; infinite or NaN at 0, -1, ..
Tensor polygamma(const Tensor& a, int order);
inline constexpr int most_polygamma = 10;
/// The x with erf(x) = a; infinite at -1 and 1, NaN beyond them.
Tensor erfinv(const Tensor& a);

/// The modified Bessel function of the first kind of order 0 or 1, times e^-|x| if it is scaled.
Tensor bessel_i(const Tensor& a, int order, bool is_scaled);

}  // namespace lathe::importing
