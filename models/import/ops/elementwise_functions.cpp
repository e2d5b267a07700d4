#include "models/import/ops/elementwise_functions.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <utility>

#include "frontend/graph.h"
#include "frontend/ops/loops/loops.h"

namespace lathe::importing {

namespace {

/// alpha (e^x - 1) up to 0. The exponent is limited to 0, so that the branch that is not taken has finite gradients.
Tensor exponential(const Tensor& x, double alpha) { return where(x > 0, 0, x).expm1() * alpha; }

}  // namespace

Tensor side_of(const Tensor& x) { return where(x < 0, x.graph().constant(-1, x.dtype()), 1); }

Tensor tan(const Tensor& a) {
  return wider(a, [](const Tensor& x) { return x.sin() / x.cos(); });
}

/// (e^x - e^-x) / 2 without cancellation near 0, and without overflow where the result is finite.
Tensor sinh(const Tensor& a) {
  return wider(a, [](const Tensor& x) {
    const Tensor root = (x.abs() * 0.5).exp();
    const Tensor large = (root * 0.5) * root * x.sign(), small = (x.expm1() - (-x).expm1()) * 0.5;
    return where(x.abs() > 20.0, large, small);
  });
}

Tensor cosh(const Tensor& a) {
  return wider(a, [](const Tensor& x) {
    const Tensor root = (x.abs() * 0.5).exp(), inverse = (-x.abs()).exp();
    return (root * 0.5) * root + inverse * 0.5;
  });
}

/// log(|x| + sqrt(x^2 + 1)) with the sign of x; for large x, x^2 would overflow.
Tensor asinh(const Tensor& a) {
  return wider(a, [](const Tensor& x) {
    constexpr double large = 1e8;
    const Tensor side = side_of(x), size = x * side, is_large = size > large;
    const Tensor capped = where(is_large, large, size), square = capped * capped;
    const Tensor small = (capped + square / ((square + 1.0).sqrt() + 1.0)).log1p();
    return where(is_large, where(is_large, size, large).log() + std::log(2.0), small) * side;
  });
}

/// log(x + sqrt(x^2 - 1)), accurate near 1.
Tensor acosh(const Tensor& a) {
  return wider(a, [](const Tensor& x) {
    const Tensor t = minimum(x, 1e8) - 1.0;
    return where(x > 1e8, x.log() + std::log(2.0), (t + (t * 2.0 + t * t).sqrt()).log1p());
  });
}

/// log((1 + x) / (1 - x)) / 2
Tensor atanh(const Tensor& a) {
  return wider(a, [](const Tensor& x) { return (x.log1p() - (-x).log1p()) * 0.5; });
}

/// Reduces to |t| <= 0.66 and takes the rational approximation of the Cephes library, whose error is 2e-16. Branches
/// that are not taken have finite gradients.
Tensor atan(const Tensor& a) {
  return wider(a, [](const Tensor& x) {
    constexpr double large = 2.414213562373095, middle = 0.66;  // tan(3 pi / 8)
    const Tensor size = x.abs(), sign = x.sign();
    const Tensor is_large = size > large, is_middle = size > middle;
    const Tensor inverse = -1.0 / where(is_large, x, large), near = (x - sign) / (size + 1.0);
    const Tensor t = where(is_large, inverse, where(is_middle, near, x));
    const Tensor start =
        where(is_large, sign * (std::numbers::pi / 2), where(is_middle, sign * (std::numbers::pi / 4), 0));
    const Tensor z = t * t;
    const Tensor above =
        (((z * -8.750608600031904122785e-1 + -1.615753718733365076637e1) * z + -7.500855792314704667340e1) * z +
         -1.228866684490136173410e2) *
            z +
        -6.485021904942025371773e1;
    const Tensor below =
        ((((z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2) * z + 4.328810604912902668951e2) * z +
         4.853903996359136964868e2) *
            z +
        1.945506571482613964425e2;
    return start + (z * (above / below)) * t + t;
  });
}

Tensor asin(const Tensor& a) {
  return wider(a, [](const Tensor& x) { return atan(x / ((1.0 - x) * (1.0 + x)).sqrt()); });
}

Tensor acos(const Tensor& a) {
  return wider(a, [](const Tensor& x) { return atan(((1.0 - x) / (1.0 + x)).sqrt()) * 2.0; });
}

namespace {

/// c[0] x^n + c[1] x^(n - 1) + ..
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  Tensor sum;
  for (const double c : coefficients) sum = sum.is_empty() ? x * 0.0 + c : sum * x + c;
  return sum;
}

}  // namespace

/// From 1 on, e^(-x^2) times the rational approximations of the Cephes library. Branches that are not taken have
/// finite values and gradients.
Tensor erfc(const Tensor& a) {
  return wider(a, [](const Tensor& x) {
    constexpr double middle = 1, large = 8, zero = 28;  // the result is 0 from about 27.2 on
    const Tensor size = x.abs(), far = minimum(maximum(size, middle), zero);
    const Tensor near_far = minimum(far, large), far_far = maximum(far, large);
    const Tensor up_to_8 =
        polynomial(near_far, {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687,
                              4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
                              9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2}) /
        polynomial(near_far, {1, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
                              9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
                              1.65666309194161350182e3, 5.57535340817727675546e2});
    const Tensor from_8 =
        polynomial(far_far, {5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414,
                             6.16021097993053585195, 7.40974269950448939160, 2.97886665372100240670}) /
        polynomial(far_far, {1, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1,
                             1.70814450747565897222e1, 9.60896809063285878198, 3.36907645100081516050});
    const Tensor tail = (-(far * far)).exp() * where(far < large, up_to_8, from_8);
    const Tensor outside = where(x < 0, 2.0 - tail, tail);
    return where(size > middle, outside, 1.0 - x.erf());
  });
}

/// Where a is 0 and log(b) is not finite, both have no gradient.
Tensor xlogy(const Tensor& a, const Tensor& b) {
  const Tensor is_zero = (a == 0) & ((b <= 0) | (b == std::numeric_limits<double>::infinity()));
  return where(is_zero, 0, a * log(where(is_zero, 1, b)));
}

Tensor limited(const Tensor& x, double low, double high) {
  return straight_through(clamp(x, low, high), where((x > low) & (x < high), x, 0));
}

Tensor leaky_relu(const Tensor& x, double slope) { return where(x > 0, x, x * slope); }

Tensor elu(const Tensor& x, double alpha) { return where(x > 0, x, exponential(x, alpha)); }

Tensor celu(const Tensor& x, double alpha) { return where(x > 0, x, exponential(x / alpha, alpha)); }

Tensor selu(const Tensor& x, double alpha, double gamma) { return where(x > 0, x, exponential(x, alpha)) * gamma; }

Tensor mish(const Tensor& x) { return x * tanh(softplus(x)); }

Tensor hard_sigmoid(const Tensor& x, double alpha, double beta) { return limited(x * alpha + beta, 0, 1); }

Tensor hard_swish(const Tensor& x) { return x * limited(x / 6.0 + 0.5, 0, 1); }

Tensor softsign(const Tensor& x) { return x / (abs(x) + 1.0); }

namespace {

/// Returns x as the sum of two numbers whose products have no rounding errors. x is f64.
std::pair<Tensor, Tensor> split(const Tensor& x) {
  const Tensor shifted = x * 0x1.0000002p27, high = shifted - (shifted - x);
  return {high, x - high};
}

/// Returns q * y - p, for the product p of both rounded to f64.
Tensor rounding_error(const Tensor& q, const Tensor& y, const Tensor& p) {
  const auto [a, b] = split(q);
  const auto [c, d] = split(y);
  const Tensor error = ((a * c - p) + a * d + b * c) + b * d;
  return where(isfinite(error), error, 0);
}

/// Returns the remainder of x / y with the sign of x, for f64. A quotient that was rounded up to a whole number is
/// one too large, which makes the remainder negative. Products of numbers that were f32 or smaller are exact.
Tensor truncated_remainder(const Tensor& x, const Tensor& y, bool is_product_exact) {
  const Tensor whole = detach((x / y).trunc()), product = whole * y, difference = x - product;
  const Tensor rest = is_product_exact ? difference : difference - detach(rounding_error(whole, y, product));
  const Tensor is_wrong = (rest * side_of(x)) < 0;
  const Tensor fixed = rest + where(is_wrong, abs(y) * side_of(x), 0);
  return where((abs(y) == std::numeric_limits<double>::infinity()) & isfinite(x), x, fixed);
}

/// Whether a quotient with this remainder, rounded towards 0, is one larger than the quotient rounded down.
Tensor is_above_floor(const Tensor& rest, const Tensor& y) { return (rest != 0) & ((rest < 0) ^ (y < 0)); }

/// Returns the remainder of the quotient rounded down, given that of the quotient rounded towards 0.
Tensor floor_of(const Tensor& rest, const Tensor& y) { return where(is_above_floor(rest, y), rest + y, rest); }

}  // namespace

Tensor float_remainder(const Tensor& a, const Tensor& b, bool truncates) {
  const Tensor x = a.to(f64), y = b.to(f64), rest = truncated_remainder(x, y, a.dtype() != f64);
  return (truncates ? rest : floor_of(rest, y)).to(a.dtype());
}

Tensor floor_quotient(const Tensor& a, const Tensor& b) {
  if (!is_float(a.dtype())) return (a - floor_remainder(a, b)) / b;
  const Tensor x = a.to(f64), y = b.to(f64), rest = truncated_remainder(x, y, a.dtype() != f64);
  // A multiple of y, whose quotient has rounding errors.
  const Tensor whole = ((x - rest) / y).round() - is_above_floor(rest, y).to(f64);
  return detach(where(y == 0, x / y, whole).to(a.dtype()));
}

Tensor floor_remainder(const Tensor& a, const Tensor& b) {
  return floor_of(a % b, b);  // a % b has the sign of a
}

/// Squares the base for each bit of the exponent.
Tensor integer_power(const Tensor& base, const Tensor& exponent) {
  constexpr std::int64_t bits = 63;
  const Tensor zeros = (base * 0 + exponent * 0).to(i64);  // in the common shape
  const Tensor start = base.to(i64) + zeros, to = exponent.to(i64) + zeros;
  const LoopResults loop = repeat(bits, {start.graph().ones(start.shape(), i64), start, to},
                                  [](std::span<const Tensor> states, const Tensor&) {
                                    const Tensor &result = states[0], &factor = states[1], &rest = states[2];
                                    const Tensor is_set = rest % 2 != 0;
                                    return LoopStep{{where(is_set, result * factor, result), factor * factor,
                                                     shift_right(rest, rest.graph().constant(1, i64))}};
                                  },
                                  {.name = "power"});
  const Tensor sign = where(to % 2 != 0, start, 1);
  const Tensor inverse = where(abs(start) == 1, sign, 0);
  return where(to < 0, inverse, loop.carries[0]).to(base.dtype());
}

}  // namespace lathe::importing
