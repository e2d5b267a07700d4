#include <cmath>
#include <limits>

#include "ir/ops/primitives/elementwise.h"

namespace lathe::ir::ops {

namespace {

using std::span;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Value zeros_like(const GradientContext& g, int i) {
  return full(g.builder, g.operand(i).shape(), 0, g.operand(i).dtype());
}

void add_gradient(const GradientContext& g) {
  g.set(0, g.grad);
  g.set(1, g.grad);
}

void sub_gradient(const GradientContext& g) {
  if (g.needs(0)) g.set(0, g.grad);
  if (g.needs(1)) g.set(1, ir::neg(g.grad));
}

/// For complex operands the gradient is dL/dRe + i dL/dIm, so the gradient of `a` in a*b is g * conj(b).
void mul_gradient(const GradientContext& g) {
  const auto factor = [&](int i) { return is_complex(g.node.type.dtype) ? ir::conj(g.operand(i)) : g.operand(i); };
  if (g.needs(0)) g.set(0, ir::mul(g.grad, factor(1)));
  if (g.needs(1)) g.set(1, ir::mul(g.grad, factor(0)));
}

void div_gradient(const GradientContext& g) {
  if (g.needs(0)) g.set(0, ir::div(g.grad, g.operand(1)));
  if (g.needs(1)) g.set(1, ir::neg(ir::mul(g.grad, ir::div(g.result, g.operand(1)))));
}

/// The larger (smaller) operand receives the gradient; equal operands share it.
void extremum_gradient(const GradientContext& g, const Value& first_wins) {
  const Value half = ir::mul(g.grad, 0.5);
  const Value tie = ir::eq(g.operand(0), g.operand(1));
  if (g.needs(0)) g.set(0, ir::where(tie, half, ir::where(first_wins, g.grad, 0.0)));
  if (g.needs(1)) g.set(1, ir::where(tie, half, ir::where(first_wins, 0.0, g.grad)));
}
void minimum_gradient(const GradientContext& g) { extremum_gradient(g, ir::lt(g.operand(0), g.operand(1))); }
void maximum_gradient(const GradientContext& g) { extremum_gradient(g, ir::lt(g.operand(1), g.operand(0))); }

/// d a^b = b a^(b-1) da + a^b log(a) db, with 0 where the limit is 0 and the formula gives NaN (b = 0; a = 0 with b
/// >= 0), as in PyTorch.
void pow_gradient(const GradientContext& g) {
  const Value &a = g.operand(0), &b = g.operand(1);
  if (g.needs(0)) g.set(0, ir::where(ir::eq(b, 0.0), 0.0, ir::mul(g.grad, ir::mul(b, ir::pow(a, ir::sub(b, 1.0))))));
  if (g.needs(1)) {
    const Value flat = ir::logical_and(ir::eq(a, 0.0), ir::ge(b, 0.0));
    const Value safe = ir::where(flat, 1.0, a);
    g.set(1, ir::where(flat, 0.0, ir::mul(g.grad, ir::mul(g.result, ir::log(safe)))));
  }
}

void neg_gradient(const GradientContext& g) { g.set(0, ir::neg(g.grad)); }
void abs_gradient(const GradientContext& g) { g.set(0, ir::mul(g.grad, ir::sign(g.operand(0)))); }
void zero_gradient(const GradientContext& g) { g.set(0, zeros_like(g, 0)); }

constexpr NotDifferentiable integer_rem{"the remainder is defined for integers only"};

double sign_of(span<const double> x) { return x[0] > 0 ? 1 : (x[0] < 0 ? -1 : x[0]); }
double min_of(span<const double> x) {
  if (std::isnan(x[0]) || std::isnan(x[1])) return nan;
  return x[0] < x[1] ? x[0] : x[1];
}
double max_of(span<const double> x) {
  if (std::isnan(x[0]) || std::isnan(x[1])) return nan;
  return x[0] > x[1] ? x[0] : x[1];
}

std::vector<Sample> number_samples() { return binary_samples(-2, 2, {f64, i64, i32, c128}); }
std::vector<Sample> real_samples() { return binary_samples(-2, 2, {f64, i64, i32}); }
std::vector<Sample> signed_samples() { return unary_samples(-2, 2, {f64, i64, i32}); }

}  // namespace

constinit const Op add = binary(
    "add", "a + b, broadcast", ScalarOp::add, MixedPrecision::follow,
    [](span<const double> x) { return x[0] + x[1]; }, infer_same<rules::numbers>, add_gradient, number_samples);

constinit const Op sub = binary(
    "sub", "a - b, broadcast", ScalarOp::sub, MixedPrecision::follow,
    [](span<const double> x) { return x[0] - x[1]; }, infer_same<rules::numbers>, sub_gradient, number_samples);

constinit const Op mul = binary(
    "mul", "a * b, broadcast", ScalarOp::mul, MixedPrecision::follow,
    [](span<const double> x) { return x[0] * x[1]; }, infer_same<rules::numbers>, mul_gradient, number_samples);

constinit const Op div = binary(
    "div", "a / b, broadcast; of integers it truncates towards zero, and x / 0 is 0", ScalarOp::div,
    MixedPrecision::follow, [](span<const double> x) { return x[0] / x[1]; }, infer_same<rules::reals>, div_gradient,
    [] { return binary_samples(0.5, 3, {f64, i64, i32}, -9, 9); });

constinit const Op rem = binary(
    "rem", "the remainder of integers, with the sign of a; x rem 0 is 0", ScalarOp::rem, MixedPrecision::follow,
    [](span<const double> x) { return std::fmod(x[0], x[1]); }, infer_same<rules::integers>, integer_rem,
    [] { return binary_samples(1, 4, {i64, i32}, -9, 9); });

constinit const Op minimum =
    binary("minimum", "the smaller of a and b, broadcast; NaN if either is", ScalarOp::min, MixedPrecision::follow,
           min_of, infer_same<rules::reals>, minimum_gradient, real_samples);

constinit const Op maximum =
    binary("maximum", "the larger of a and b, broadcast; NaN if either is", ScalarOp::max, MixedPrecision::follow,
           max_of, infer_same<rules::reals>, maximum_gradient, real_samples);

constinit const Op pow = binary(
    "pow", "a to the power b, broadcast", ScalarOp::pow, MixedPrecision::f32,
    [](span<const double> x) { return std::pow(x[0], x[1]); }, infer_same<rules::floats>, pow_gradient,
    [] { return binary_samples(-2, 2, {f64}, 0.5, 2); });

constinit const Op neg = unary(
    "neg", "-a", ScalarOp::neg, MixedPrecision::follow, [](span<const double> x) { return -x[0]; },
    infer_same<rules::numbers>, neg_gradient, [] { return unary_samples(-2, 2, {f64, i64, i32, c128}); });

constinit const Op abs = unary(
    "abs", "the absolute value; its gradient at 0 is 0", ScalarOp::abs, MixedPrecision::follow,
    [](span<const double> x) { return std::fabs(x[0]); }, infer_same<rules::reals>, abs_gradient, signed_samples);

constinit const Op sign =
    unary("sign", "1, -1 or, for 0 and NaN, a itself; its gradient is 0", ScalarOp::sign, MixedPrecision::follow,
          sign_of, infer_same<rules::reals>, zero_gradient, signed_samples);

constinit const Op floor = unary(
    "floor", "the largest whole number not above a; its gradient is 0", ScalarOp::floor, MixedPrecision::follow,
    [](span<const double> x) { return std::floor(x[0]); }, infer_same<rules::floats>, zero_gradient,
    [] { return unary_samples(-3, 3); });

constinit const Op round = unary(
    "round", "the nearest whole number, halves to even; its gradient is 0", ScalarOp::round, MixedPrecision::follow,
    [](span<const double> x) { return std::nearbyint(x[0]); }, infer_same<rules::floats>, zero_gradient,
    [] { return unary_samples(-3, 3); });

}  // namespace lathe::ir::ops
