#include <fmt/core.h>

#include <cmath>

#include "ir/ops/composites/composite.h"
#include "ir/ops/softmax_floors.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec softmax_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the dim along which the result sums to 1"},
    {"zero_masked", AttrKind::boolean, false, false, "the result is 0, not NaN, if all elements are -inf"}};
constexpr AttrSpec log_softmax_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the dim along which the exponentials of the result sum to 1"}};
constexpr AttrSpec norm_attrs[] = {{"eps", AttrKind::real, false, 1e-5, "added to the variance or mean square"}};
constexpr std::string_view softmax_labels[] = {"dtype_kind", "dim_range"};
constexpr std::string_view norm_labels[] = {"dtype_kind", "dtype_match", "norm_rank", "norm_eps", "norm_weight"};

TensorType infer_softmax(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType& a = ctx.operand(0);
  (void)ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank());
  return TensorType::contiguous(a.dtype, a.shape);
}

int softmax_axis(const Node& node) {
  return rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
}

/// Softmax for which a row of only -inf has zero exponentials, quotients and gradients.
Value zero_masked_softmax(const Value& a, int axis) {
  const Value most = maximum(stop_gradient(max(a, {axis}, true)), least_softmax_maximum(a.dtype()));
  const Value e = exp(sub(a, most));
  return div(e, maximum(sum(e, {axis}, true), least_softmax_sum));
}

Value expand_softmax(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const int axis = softmax_axis(node);
  const DType dtype = node.type.dtype;
  if (node.attrs.get<bool>("zero_masked")) return cast(zero_masked_softmax(upcast(operands[0]), axis), dtype);
  const Value e = exp(less_row_max(upcast(operands[0]), axis));
  return cast(div(e, sum(e, {axis}, true)), dtype);
}

/// y * (g - sum(g * y)).
void softmax_gradient(const GradientContext& g) {
  const int axis = softmax_axis(g.node);
  const DType dtype = g.node.type.dtype;
  const Value y = upcast(g.result), grad = upcast(g.grad);
  g.set(0, cast(mul(y, sub(grad, sum(mul(grad, y), {axis}, true))), dtype));
}

Value expand_log_softmax(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const int axis = softmax_axis(node);
  const DType dtype = node.type.dtype;
  const Value z = less_row_max(upcast(operands[0]), axis);
  return cast(sub(z, log(sum(exp(z), {axis}, true))), dtype);
}

/// g - exp(y) * sum(g).
void log_softmax_gradient(const GradientContext& g) {
  const int axis = softmax_axis(g.node);
  const DType dtype = g.node.type.dtype;
  const Value y = upcast(g.result), grad = upcast(g.grad);
  g.set(0, cast(sub(grad, mul(exp(y), sum(grad, {axis}, true))), dtype));
}

/// Infers the type of a norm over the last dim of x; weight and bias, if given, have only that dim.
TensorType infer_norm(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  rules::require_same_dtype(ctx);
  const TensorType& x = ctx.operand(0);
  ctx.require(x.rank() >= 1, "norm_rank", fmt::format("{} has no dim to normalise", rules::describe(ctx, 0)),
              "give a tensor with at least one dim");
  const double eps = ctx.attr<double>("eps");
  ctx.require(eps >= 0 && std::isfinite(eps), "norm_eps", fmt::format("eps is {}", eps),
              "give a finite number of 0 or more");
  const Dim& features = x.shape[x.rank() - 1];
  Shape shape = x.shape;
  for (int i = 1; i < ctx.arity(); ++i) {
    const std::string_view role = i == 1 ? "weight" : "bias";
    const auto message =
        fmt::format("{} does not fit the last dim of {}", describe_role(ctx, i, role), rules::describe(ctx, 0));
    const auto hint = fmt::format("it must be [{}]", features.to_string());
    const TensorType& scale = ctx.operand(i);
    ctx.require(scale.rank() == 1, "norm_weight", message, hint);
    ctx.require_equal(scale.shape[0], features, "norm_weight", message, hint);
    shape.set(x.rank() - 1, rules::broadcast_size(shape[x.rank() - 1], scale.shape[0]));
  }
  return TensorType::contiguous(x.dtype, std::move(shape));
}

/// Normalized x and its scale factor. Forward and gradient both build these, so hash-consing merges their nodes.
struct Normalized {
  Value x_hat, rstd;
};

Normalized layer_parts(const Value& operand, double eps) {
  const Value x = upcast(operand);
  const int last = x.rank() - 1;
  const Value centered = sub(x, mean_keep(x, {last}));
  const Value rstd = rsqrt(add(mean_keep(mul(centered, centered), {last}), eps));
  return {mul(centered, rstd), rstd};
}

Normalized rms_parts(const Value& operand, double eps) {
  const Value x = upcast(operand);
  const Value rstd = rsqrt(add(mean_keep(mul(x, x), {x.rank() - 1}), eps));
  return {mul(x, rstd), rstd};
}

Value scale_and_shift(const Value& x_hat, std::span<const Value> operands) {
  const DType dtype = operands[0].dtype();
  Value y = x_hat;
  if (operands.size() > 1) y = mul(y, upcast(operands[1]));
  if (operands.size() > 2) y = add(y, upcast(operands[2]));
  return cast(y, dtype);
}

Value expand_layer_norm(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  return scale_and_shift(layer_parts(operands[0], node.attrs.get<double>("eps")).x_hat, operands);
}

Value expand_rms_norm(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  return scale_and_shift(rms_parts(operands[0], node.attrs.get<double>("eps")).x_hat, operands);
}

/// weight: sum(g * x_hat) over the rows; bias: sum(g). Sums in the compute dtype, then rounds.
void scale_and_shift_gradients(const GradientContext& g, const Value& x_hat) {
  const DType dtype = g.node.type.dtype;
  const Value grad = upcast(g.grad);
  if (g.operands.size() > 1 && g.needs(1)) {
    const Shape shape = g.operand(1).shape();
    g.set(1, cast(sum_to(mul(grad, x_hat), shape), dtype));
  }
  if (g.operands.size() > 2 && g.needs(2)) {
    const Shape shape = g.operand(2).shape();
    g.set(2, cast(sum_to(grad, shape), dtype));
  }
}

/// With d = g * weight, the gradient of x is rstd * (d - mean(d) - x_hat * mean(d * x_hat)); RMS norm has no mean(d).
void norm_gradient(const GradientContext& g, const Normalized& parts, bool centered) {
  scale_and_shift_gradients(g, parts.x_hat);
  if (!g.needs(0)) return;
  const DType dtype = g.node.type.dtype;
  const int last = g.node.type.rank() - 1;
  Value d = upcast(g.grad);
  if (g.operands.size() > 1) d = mul(d, upcast(g.operand(1)));
  const Value along = mul(parts.x_hat, mean_keep(mul(d, parts.x_hat), {last}));
  const Value rest = centered ? sub(d, mean_keep(d, {last})) : d;
  g.set(0, cast(mul(sub(rest, along), parts.rstd), dtype));
}

void layer_norm_gradient(const GradientContext& g) {
  norm_gradient(g, layer_parts(g.operand(0), g.node.attrs.get<double>("eps")), true);
}
void rms_norm_gradient(const GradientContext& g) {
  norm_gradient(g, rms_parts(g.operand(0), g.node.attrs.get<double>("eps")), false);
}

std::vector<Sample> softmax_samples() {
  std::vector<Sample> samples = unary_composite_samples({{"dim", std::int64_t{-1}}});
  samples.push_back({.operands = {{{2, 3, 4}, f64, -2, 2}}, .attrs = {{"dim", std::int64_t{1}}}});
  samples.push_back({.operands = {{{2, 3}, f64, 700, 900}}, .attrs = {{"dim", std::int64_t{0}}}});
  samples.push_back({.operands = {{{3, 0}, f64, -2, 2}}, .attrs = {{"dim", std::int64_t{1}}}});
  return samples;
}

std::vector<Sample> zero_masked_samples() {
  std::vector<Sample> samples = softmax_samples();
  for (std::size_t i = 0, count = samples.size(); i < count; ++i) {
    samples.push_back(samples[i]);
    samples.back().attrs.set("zero_masked", true);
  }
  return samples;
}

std::vector<Sample> norm_samples(int most) {
  std::vector<Sample> samples;
  const SampleOperand scale{{4}, f64, 0.5, 2};
  for (int n = 0; n <= most; ++n)
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{4}, {2, 3, 4}, {0, 4}}) {
      Sample sample{.operands = {{sizes, f64, -2, 2}}, .attrs = {}};
      for (int i = 0; i < n; ++i) sample.operands.push_back(scale);
      samples.push_back(sample);
    }
  samples.push_back({.operands = {{{2, 1}, f64, 1, 2}}, .attrs = {{"eps", 0.1}}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op softmax = composite(
    "softmax", "exp(a) / sum(exp(a)) along a dim, without overflow; zero_masked: 0 if all elements are -inf", {1, 1},
    MixedPrecision::f32, softmax_attrs, softmax_labels, infer_softmax, expand_softmax, softmax_gradient,
    zero_masked_samples);

constinit const Op log_softmax = composite("log_softmax", "log(softmax(a)) along a dim, without overflow", {1, 1},
                                           MixedPrecision::f32, log_softmax_attrs, softmax_labels, infer_softmax,
                                           expand_log_softmax, log_softmax_gradient, softmax_samples);

constinit const Op layer_norm =
    composite("layer_norm", "(x - mean) / sqrt(variance + eps) over the last dim [* weight [+ bias]]", {1, 3},
              MixedPrecision::f32, norm_attrs, norm_labels, infer_norm, expand_layer_norm, layer_norm_gradient,
              [] { return norm_samples(2); });

constinit const Op rms_norm = composite("rms_norm", "x / sqrt(mean of x*x + eps) over the last dim [* weight]",
                                        {1, 2}, MixedPrecision::f32, norm_attrs, norm_labels, infer_norm,
                                        expand_rms_norm, rms_norm_gradient, [] { return norm_samples(1); });

}  // namespace ops

}  // namespace lathe::ir
