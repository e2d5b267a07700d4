#include "models/import/ops/special_functions.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "frontend/graph.h"
#include "models/import/ops/elementwise_functions.h"

namespace lathe::importing {

namespace {

constexpr double pi = std::numbers::pi, infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

/// Returns c[0] + c[1] x + c[2] x^2 + ..
Tensor polynomial(const Tensor& x, std::span<const double> c) {
  Tensor sum = x * c.back() + c[c.size() - 2];
  for (std::size_t i = c.size() - 2; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// The series of Stirling is accurate from here on, and recurrences lead to it.
constexpr int shift = 10;

/// 1 - x below 1/2, where the functions are reflected.
struct Reflected {
  Tensor is_left, x;
};
Reflected reflected(const Tensor& x) {
  const Tensor is_left = x < 0.5;
  return {is_left, where(is_left, 1.0 - x, x)};
}

/// The angle pi x without the turns of whole numbers, for the reflected x. Others have an angle whose functions have
/// finite gradients: branches that are not taken must not make a gradient NaN.
Tensor half_turns(const Tensor& x, const Tensor& is_left) { return where(is_left, x - round(x), 0.5) * pi; }

/// Returns a derivative of c = cot(pi x) with respect to x, a polynomial of c: d/dx p(c) = -pi (1 + c^2) p'(c).
std::vector<double> cotangent_derivative(int order) {
  std::vector<double> p{0, 1};
  for (int n = 0; n < order; ++n) {
    std::vector<double> next(p.size() + 1);
    for (std::size_t i = 1; i < p.size(); ++i) {
      next[i - 1] -= pi * static_cast<double>(i) * p[i];
      next[i + 1] -= pi * static_cast<double>(i) * p[i];
    }
    p = next;
  }
  return p;
}

}  // namespace

Tensor lgamma(const Tensor& a) {
  return wider(a, [](const Tensor& given) {
    static constexpr double stirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
    const Reflected at = reflected(given);
    const Tensor is_small = at.x < shift, low = minimum(at.x, shift);
    Tensor factors = low;
    for (int k = 1; k < shift; ++k) factors = factors * (low + k);
    const Tensor w = where(is_small, at.x + shift, at.x), inverse = reciprocal(w);
    const Tensor series = polynomial(square(inverse), stirling) * inverse + (std::log(2 * pi) / 2 - 0.5);
    const Tensor y = (w - 0.5) * (log(w) - 1.0) + series - where(is_small, log(factors), 0);
    return where(at.is_left, std::log(pi) - log(abs(sin(half_turns(given, at.is_left)))) - y, y);
  });
}

Tensor digamma(const Tensor& a) {
  return wider(a, [](const Tensor& given) {
    static constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760};
    const Reflected at = reflected(given);
    const Tensor is_small = at.x < shift, low = minimum(at.x, shift);
    Tensor steps = reciprocal(low);
    for (int k = 1; k < shift; ++k) steps = steps + reciprocal(low + k);
    const Tensor w = where(is_small, at.x + shift, at.x), inverse = square(reciprocal(w));
    const Tensor y = log(w) - 0.5 / w - polynomial(inverse, series) * inverse - where(is_small, steps, 0);
    const Tensor angle = half_turns(given, at.is_left), left = y - cos(angle) / sin(angle) * pi;
    const Tensor is_pole = (given < 0.0) & (given == floor(given));
    return where(is_pole, nan, where(at.is_left, left, y));
  });
}

/// The sum of (x + k)^-(n+1) over k, from shift on by the formula of Euler and Maclaurin, times n!. Below 1/2 it is
/// reflected.
Tensor polygamma(const Tensor& a, int order) {
  return wider(a, [&](const Tensor& given) {
    // B(2j) / (2j)!
    static constexpr double bernoulli[] = {
        1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000, 1.0 / 74724249600};
    const Reflected at = reflected(given);
    const Tensor is_small = at.x < shift, low = minimum(at.x, shift);
    const auto power = [&](const Tensor& x) { return pow(x, -static_cast<double>(order + 1)); };
    Tensor terms = power(low);
    for (int k = 1; k < shift; ++k) terms = terms + power(low + k);
    const Tensor w = where(is_small, at.x + shift, at.x);
    std::vector<double> series;
    double rising = order + 1;  // (n+1) (n+2) .. (n+2j-1)
    for (int j = 1; j <= static_cast<int>(std::size(bernoulli)); ++j) {
      series.push_back(bernoulli[j - 1] * rising);
      rising *= static_cast<double>(order + 2 * j) * (order + 2 * j + 1);
    }
    const Tensor tail = w / order + 0.5 + polynomial(square(reciprocal(w)), series) / w;
    const Tensor sum = (tail * power(w) + where(is_small, terms, 0)) * std::tgamma(order + 1);
    const Tensor y = order % 2 == 0 ? -sum : sum;
    const Tensor angle = half_turns(given, at.is_left);
    const Tensor turned = polynomial(cos(angle) / sin(angle), cotangent_derivative(order)) * -pi;
    return where(at.is_left, order % 2 == 0 ? turned + y : turned - y, y);
  });
}

/// A rational approximation (Blair, Edwards and Johnson 1976, to 3 digits), then two of Newton's steps.
Tensor erfinv(const Tensor& a) {
  return wider(a, [](const Tensor& given) {
    static constexpr double center_top[] = {0.886226899, -1.645349621, 0.914624893, -0.140543331},
                            center_bottom[] = {1, -2.118377725, 1.442710462, -0.329097515, 0.012229801},
                            tail_top[] = {-1.970840454, -1.624906493, 3.429567803, 1.641345311},
                            tail_bottom[] = {1, 3.543889200, 1.637067800};
    constexpr double center = 0.7;
    const Tensor size = abs(given), y = where(size < 1.0, given, 0);
    const Tensor inner = minimum(abs(y), center), outer = maximum(abs(y), center);
    const Tensor square_of = square(inner), root = sqrt(-log((1.0 - outer) * 0.5));
    const Tensor near = inner * polynomial(square_of, center_top) / polynomial(square_of, center_bottom);
    const Tensor far = polynomial(root, tail_top) / polynomial(root, tail_bottom);
    Tensor x = where(size < center, near, far) * sign(y);
    for (int i = 0; i < 2; ++i) x = x - (erf(x) - y) * exp(square(x)) * (std::sqrt(pi) / 2);
    const Tensor end =
        where(given == 1.0, infinity, where(given == -1.0, -infinity, given.graph().constant(nan, given.dtype())));
    return where(size < 1.0, x, end);
  });
}

/// The series around 0 up to 16, and the asymptotic one from there on. All terms of the former are positive.
Tensor bessel_i(const Tensor& a, int order, bool is_scaled) {
  return wider(a, [&](const Tensor& given) {
    constexpr double limit = 16;
    constexpr int terms = 40, far_terms = 28;
    const Tensor side = side_of(given), size = given * side, low = minimum(size, limit), high = maximum(size, limit);
    const Tensor quarter = square(low) * 0.25, inverse = reciprocal(high * 8.0);
    Tensor near = ones_like(low), far = ones_like(high);
    for (int k = terms; k > 0; --k) near = near * quarter * (1.0 / (k * (k + order))) + 1.0;
    for (int k = far_terms; k > 0; --k) {
      const int odd = 2 * k - 1;
      far = 1.0 - far * inverse * (static_cast<double>(4 * order - odd * odd) / k);
    }
    if (order == 1) near = near * low * 0.5;
    near = is_scaled ? near * exp(-low) : near;
    far = far * rsqrt(high * (2 * pi));
    // e^x in two factors, because it overflows before the product does.
    const Tensor root = exp(high * 0.5);
    if (!is_scaled) far = far * root * root;
    const Tensor y = where(size < limit, near, far);
    return order == 1 ? y * side : y;
  });
}

}  // namespace lathe::importing
