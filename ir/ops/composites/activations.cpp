#include <fmt/core.h>

#include <numbers>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec gelu_attrs[] = {
    {"approximate", AttrKind::text, false, std::string_view("none"), "\"none\" (by erf) or \"tanh\""}};
constexpr AttrSpec clamp_attrs[] = {
    {"low", AttrKind::number, true, {}, "the smallest value of the result"},
    {"high", AttrKind::number, true, {}, "the largest value of the result; takes precedence over low"}};
constexpr std::string_view kind_labels[] = {"dtype_kind"};
constexpr std::string_view gelu_labels[] = {"dtype_kind", "gelu_approximate"};

template <unsigned kinds>
TensorType infer_unary(const InferContext& ctx) {
  return rules::elementwise_type(ctx, kinds);
}

/// Computes f(a) in the compute dtype and casts the result to the operand's dtype.
template <class F>
Value in_compute_dtype(const Value& a, F f) {
  const DType dtype = a.dtype();
  return cast(f(upcast(a)), dtype);
}

/// Sets the gradient g * f(a), computed in the compute dtype.
template <class F>
void set_product_gradient(const GradientContext& g, const Value& a, F f) {
  const DType dtype = a.dtype();
  g.set(0, cast(mul(upcast(g.grad), f(upcast(a))), dtype));
}

Value expand_relu(GraphBuilder&, const Node&, std::span<const Value> operands) { return maximum(operands[0], 0.0); }
/// The result determines the derivative as well as the operand does, and is saved anyway.
void relu_gradient(const GradientContext& g) { g.set(0, where(le(g.result, 0.0), 0.0, g.grad)); }

// sqrt(2/pi) and the cubic term of the tanh form (Hendrycks & Gimpel 2016).
constexpr double tanh_scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, tanh_cubic = 0.044715;

bool by_tanh(const Node& node) { return node.attrs.get<std::string>("approximate") == "tanh"; }

TensorType infer_gelu(const InferContext& ctx) {
  const auto& form = ctx.attr<std::string>("approximate");
  ctx.require(form == "none" || form == "tanh", "gelu_approximate",
              fmt::format("there is no approximation \"{}\"", form), "use \"none\" or \"tanh\"");
  return rules::elementwise_type(ctx, rules::floats);
}

/// 1 / (1 + e^y): for large y the exponential is infinite and the quotient 0; there are no NaNs.
Value falling_logistic(const Value& y) { return div(1.0, add(exp(y), 1.0)); }
Value logistic(const Value& x) { return falling_logistic(neg(x)); }

/// The standard normal CDF, or its tanh form: (1 + tanh u) / 2 = 1 / (1 + e^(-2u)), which is equally accurate for
/// large negative and positive values.
Value gelu_gate(const Value& x, bool tanh_form) {
  if (tanh_form) return falling_logistic(mul(x, add(mul(mul(x, x), -2 * tanh_scale * tanh_cubic), -2 * tanh_scale)));
  return mul(add(erf(mul(x, std::numbers::sqrt2 / 2)), 1.0), 0.5);
}

Value expand_gelu(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const bool tanh_form = by_tanh(node);
  return in_compute_dtype(operands[0], [&](const Value& x) { return mul(x, gelu_gate(x, tanh_form)); });
}

/// gate(x) + x * gate'(x). With erf, gate' is the normal density. With tanh, gate' = 2 gate (1 - gate) u'(x).
void gelu_gradient(const GradientContext& g) {
  const bool tanh_form = by_tanh(g.node);
  set_product_gradient(g, g.operand(0), [&](const Value& x) {
    const Value gate = gelu_gate(x, tanh_form);
    if (!tanh_form) {
      const Value density = mul(exp(mul(mul(x, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
      return add(gate, mul(x, density));
    }
    const Value inner = add(mul(mul(x, x), 6 * tanh_scale * tanh_cubic), 2 * tanh_scale);
    return add(gate, mul(x, mul(mul(gate, sub(1.0, gate)), inner)));
  });
}

Value expand_sigmoid(GraphBuilder&, const Node&, std::span<const Value> operands) {
  return in_compute_dtype(operands[0], logistic);
}
/// y * (1 - y).
void sigmoid_gradient(const GradientContext& g) {
  set_product_gradient(g, g.result, [](const Value& y) { return mul(y, sub(1.0, y)); });
}

Value expand_silu(GraphBuilder&, const Node&, std::span<const Value> operands) {
  return in_compute_dtype(operands[0], [](const Value& x) { return mul(x, sigmoid(x)); });
}
/// s * (1 + x * (1 - s)) with s = sigmoid(x).
void silu_gradient(const GradientContext& g) {
  set_product_gradient(g, g.operand(0), [](const Value& x) {
    const Value s = sigmoid(x);
    return mul(s, add(mul(x, sub(1.0, s)), 1.0));
  });
}

/// max(x, 0) + log(1 + u) with u = e^(-|x|). With w = 1 + u after rounding, log(w) * u / (w - 1) equals log(1 + u) to
/// the last digits even for tiny u (Goldberg 1991, theorem 4).
Value expand_softplus(GraphBuilder&, const Node&, std::span<const Value> operands) {
  return in_compute_dtype(operands[0], [](const Value& x) {
    const Value u = exp(neg(abs(x)));
    const Value w = add(u, 1.0);
    return add(maximum(x, 0.0), where(eq(w, 1.0), u, div(mul(log(w), u), sub(w, 1.0))));
  });
}
void softplus_gradient(const GradientContext& g) { set_product_gradient(g, g.operand(0), logistic); }

Value expand_square(GraphBuilder&, const Node&, std::span<const Value> operands) {
  return mul(operands[0], operands[0]);
}
void square_gradient(const GradientContext& g) { g.set(0, mul(g.grad, mul(g.operand(0), 2.0))); }

Value expand_reciprocal(GraphBuilder&, const Node&, std::span<const Value> operands) { return div(1.0, operands[0]); }
/// -y * y.
void reciprocal_gradient(const GradientContext& g) { g.set(0, neg(mul(g.grad, mul(g.result, g.result)))); }

Value expand_clamp(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const auto &low = node.attrs.get<Number>("low"), &high = node.attrs.get<Number>("high");
  return minimum(maximum(operands[0], low), high);
}
/// 1 from low to high, inclusive, and 0 outside, as in PyTorch.
void clamp_gradient(const GradientContext& g) {
  const auto &low = g.node.attrs.get<Number>("low"), &high = g.node.attrs.get<Number>("high");
  const Value& a = g.operand(0);
  g.set(0, where(logical_and(ge(a, low), le(a, high)), g.grad, 0.0));
}

std::vector<Sample> plain_samples() { return unary_composite_samples({}); }

std::vector<Sample> with_integers() {
  std::vector<Sample> samples = plain_samples();
  samples.push_back({.operands = {{{2, 3}, i64, -4, 4}}, .attrs = {}});
  return samples;
}

std::vector<Sample> gelu_samples() {
  std::vector<Sample> samples = plain_samples();
  samples.push_back({.operands = {{{2, 3}, f64, -3, 3}}, .attrs = {{"approximate", std::string("tanh")}}});
  return samples;
}

std::vector<Sample> clamp_samples() {
  std::vector<Sample> samples = unary_composite_samples({{"low", -1.0}, {"high", 0.5}});
  samples.push_back({.operands = {{{2, 3}, i64, -4, 4}}, .attrs = {{"low", -1.0}, {"high", 2.0}}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op relu = composite("relu", "max(a, 0)", {1, 1}, MixedPrecision::follow, {}, kind_labels,
                                    infer_unary<rules::reals>, expand_relu, relu_gradient, with_integers);

constinit const Op gelu =
    composite("gelu", "a times the cumulative distribution function of the normal distribution at a", {1, 1},
              MixedPrecision::follow, gelu_attrs, gelu_labels, infer_gelu, expand_gelu, gelu_gradient, gelu_samples);

constinit const Op silu = composite("silu", "a * sigmoid(a)", {1, 1}, MixedPrecision::follow, {}, kind_labels,
                                    infer_unary<rules::floats>, expand_silu, silu_gradient, plain_samples);

constinit const Op sigmoid =
    composite("sigmoid", "1 / (1 + exp(-a))", {1, 1}, MixedPrecision::follow, {}, kind_labels,
              infer_unary<rules::floats>, expand_sigmoid, sigmoid_gradient, plain_samples);

constinit const Op softplus =
    composite("softplus", "log(1 + exp(a))", {1, 1}, MixedPrecision::follow, {}, kind_labels,
              infer_unary<rules::floats>, expand_softplus, softplus_gradient, plain_samples);

constinit const Op square = composite("square", "a * a", {1, 1}, MixedPrecision::f32, {}, kind_labels,
                                      infer_unary<rules::reals>, expand_square, square_gradient, with_integers);

constinit const Op reciprocal =
    composite("reciprocal", "1 / a", {1, 1}, MixedPrecision::f32, {}, kind_labels, infer_unary<rules::floats>,
              expand_reciprocal, reciprocal_gradient, [] { return unary_composite_samples({}, 0.5, 3); });

constinit const Op clamp =
    composite("clamp", "a limited to low .. high", {1, 1}, MixedPrecision::follow, clamp_attrs, kind_labels,
              infer_unary<rules::reals>, expand_clamp, clamp_gradient, clamp_samples);

}  // namespace ops

}  // namespace lathe::ir
