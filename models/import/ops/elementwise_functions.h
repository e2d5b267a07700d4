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

/// Returns -1 for negative numbers, and 1 for others. x * side_of(x) is |x| with the gradient 1 at 0, so that an odd
/// function of it has a gradient there.
Tensor side_of(const Tensor& x);

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

/// x, limited to low .. high. The gradient is 0 at both limits, as in PyTorch.
Tensor limited(const Tensor& x, double low, double high);

/// x, or x * slope up to 0. At 0 the gradients of this and the next functions are those from the left, as in PyTorch.
Tensor leaky_relu(const Tensor& x, double slope);
/// x, or alpha (e^(x / alpha_of_x) - 1) up to 0.
Tensor elu(const Tensor& x, double alpha);
Tensor celu(const Tensor& x, double alpha);
Tensor selu(const Tensor& x, double alpha, double gamma);
/// x * tanh(softplus(x))
Tensor mish(const Tensor& x);
/// x * alpha + beta, limited() to 0 .. 1.
Tensor hard_sigmoid(const Tensor& x, double alpha, double beta);
Tensor hard_swish(const Tensor& x);
Tensor softsign(const Tensor& x);

/// Returns the remainder of floats: a - q * b, for q = a / b rounded towards 0 or down. It is exact for quotients
/// below 2^28 of f32 and below 2^53 of f64. A finite a stays for an infinite b of its sign.
Tensor float_remainder(const Tensor& a, const Tensor& b, bool truncates);

/// Returns the remainder of integers, with the sign of b.
Tensor floor_remainder(const Tensor& a, const Tensor& b);

/// Returns the quotient rounded down, of integers or floats. As in Python, 1.0 / 0.1 gives 9, because 0.1 is more
/// than a tenth.
Tensor floor_quotient(const Tensor& a, const Tensor& b);

/// Returns powers of integers of one dtype, which wrap. A negative exponent leaves 1 and -1, and makes others 0.
Tensor integer_power(const Tensor& base, const Tensor& exponent);

}  // namespace lathe::importing
