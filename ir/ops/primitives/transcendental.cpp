#include <cmath>
#include <numbers>

#include "ir/ops/primitives/elementwise.h"

namespace lathe::ir::ops {

namespace {

using std::span;
constexpr auto floats_only = infer_same<rules::floats>;

void exp_gradient(const GradientContext& g) { g.set(0, ir::mul(g.grad, g.result)); }
void log_gradient(const GradientContext& g) { g.set(0, ir::div(g.grad, g.operand(0))); }
void sqrt_gradient(const GradientContext& g) { g.set(0, ir::div(g.grad, ir::mul(g.result, 2.0))); }
/// d x^(-1/2) = -1/2 x^(-3/2)
void rsqrt_gradient(const GradientContext& g) {
  const Value cube = ir::mul(g.result, ir::mul(g.result, g.result));
  g.set(0, ir::mul(ir::mul(g.grad, -0.5), cube));
}
void sin_gradient(const GradientContext& g) { g.set(0, ir::mul(g.grad, ir::cos(g.operand(0)))); }
void cos_gradient(const GradientContext& g) { g.set(0, ir::neg(ir::mul(g.grad, ir::sin(g.operand(0))))); }
void tanh_gradient(const GradientContext& g) { g.set(0, ir::mul(g.grad, ir::sub(1.0, ir::mul(g.result, g.result)))); }
/// d erf(x) = 2/sqrt(pi) exp(-x^2)
void erf_gradient(const GradientContext& g) {
  const Value bell = ir::exp(ir::neg(ir::mul(g.operand(0), g.operand(0))));
  g.set(0, ir::mul(g.grad, ir::mul(bell, 2 * std::numbers::inv_sqrtpi)));
}

std::vector<Sample> anywhere() { return unary_samples(-2, 2); }
std::vector<Sample> positive() { return unary_samples(0.5, 3); }

}  // namespace

constinit const Op exp = unary(
    "exp", "e to the power a", ScalarOp::exp, MixedPrecision::f32,
    [](span<const double> x) { return std::exp(x[0]); }, floats_only, exp_gradient, anywhere);

constinit const Op log = unary(
    "log", "the natural logarithm", ScalarOp::log, MixedPrecision::f32,
    [](span<const double> x) { return std::log(x[0]); }, floats_only, log_gradient, positive);

constinit const Op sqrt = unary(
    "sqrt", "the square root", ScalarOp::sqrt, MixedPrecision::follow,
    [](span<const double> x) { return std::sqrt(x[0]); }, floats_only, sqrt_gradient, positive);

constinit const Op rsqrt = unary(
    "rsqrt", "1 / sqrt(a)", ScalarOp::rsqrt, MixedPrecision::f32,
    [](span<const double> x) { return 1 / std::sqrt(x[0]); }, floats_only, rsqrt_gradient, positive);

constinit const Op sin = unary(
    "sin", "the sine of an angle in radians", ScalarOp::sin, MixedPrecision::follow,
    [](span<const double> x) { return std::sin(x[0]); }, floats_only, sin_gradient, anywhere);

constinit const Op cos = unary(
    "cos", "the cosine of an angle in radians", ScalarOp::cos, MixedPrecision::follow,
    [](span<const double> x) { return std::cos(x[0]); }, floats_only, cos_gradient, anywhere);

constinit const Op tanh = unary(
    "tanh", "the hyperbolic tangent", ScalarOp::tanh, MixedPrecision::follow,
    [](span<const double> x) { return std::tanh(x[0]); }, floats_only, tanh_gradient, anywhere);

constinit const Op erf = unary(
    "erf", "the error function", ScalarOp::erf, MixedPrecision::follow,
    [](span<const double> x) { return std::erf(x[0]); }, floats_only, erf_gradient, anywhere);

}  // namespace lathe::ir::ops
