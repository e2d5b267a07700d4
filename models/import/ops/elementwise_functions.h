#pragma once

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"

/// Element-wise functions of floats that Lathe has no op for.
namespace lathe::importing {

/// Returns the result of several steps, computed in a wider float dtype: f64 for f32, f32 for bf16 and f16.
template <class Op>
Tensor wider(const Tensor& a, const Op& op) {
  return op(a.to(a.dtype() == f32 || a.dtype() == f64 ? f64 : f32)).to(a.dtype());
}

Tensor tan(const Tensor& a);
Tensor sinh(const Tensor& a);
Tensor cosh(const Tensor& a);
Tensor asinh(const Tensor& a);
Tensor acosh(const Tensor& a);
Tensor atanh(const Tensor& a);
Tensor atan(const Tensor& a);
Tensor asin(const Tensor& a);
Tensor acos(const Tensor& a);
/// 1 - erf(a), also where that is much smaller than 1.
Tensor erfc(const Tensor& a);
/// a * log(b), and 0 where a is 0, unless b is NaN.
Tensor xlogy(const Tensor& a, const Tensor& b);

/// x, or x * slope below 0.
Tensor leaky_relu(const Tensor& x, double slope);
/// x, or alpha (e^(x / alpha_of_x) - 1) below 0.
Tensor elu(const Tensor& x, double alpha);
Tensor celu(const Tensor& x, double alpha);
Tensor selu(const Tensor& x, double alpha, double gamma);
/// x * tanh(softplus(x))
Tensor mish(const Tensor& x);
/// x * alpha + beta, limited to 0 .. 1
Tensor hard_sigmoid(const Tensor& x, double alpha, double beta);
Tensor hard_swish(const Tensor& x);
Tensor softsign(const Tensor& x);

/// Returns the remainder of floats: a - q * b, for q = a / b rounded towards 0 or down. The quotient of two f32 is
/// exact enough in f64 to round to the right whole number below 2^28.
Tensor float_remainder(const Tensor& a, const Tensor& b, bool truncates);

/// Returns the remainder of integers, with the sign of b.
Tensor floor_remainder(const Tensor& a, const Tensor& b);

}  // namespace lathe::importing
