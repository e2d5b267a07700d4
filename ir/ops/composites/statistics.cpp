#include <algorithm>
#include <limits>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec dims_attr{"dims", AttrKind::integers, true, {}, "the dims to reduce; [] reduces none"};
constexpr AttrSpec keepdim_attr{"keepdim", AttrKind::boolean, false, false, "keep the reduced dims with size 1"};
constexpr AttrSpec dim_attr{"dim", AttrKind::integer, true, {}, "the dim to reduce"};
constexpr AttrSpec mean_attrs[] = {dims_attr, keepdim_attr};
constexpr AttrSpec var_attrs[] = {
    dims_attr,
    keepdim_attr,
    {"correction", AttrKind::integer, false, std::int64_t{1}, "the divisor is the number of elements minus this"}};
constexpr AttrSpec logsumexp_attrs[] = {dim_attr, keepdim_attr};
constexpr AttrSpec argmax_attrs[] = {dim_attr};
constexpr std::string_view statistic_labels[] = {"dtype_kind", "dim_range", "dim_repeat"};
constexpr std::string_view logsumexp_labels[] = {"dtype_kind", "dim_range"};
constexpr std::string_view argmax_labels[] = {"dtype_kind", "dim_range", "argmax_empty"};

std::vector<int> axes_of(const Node& node, const Value& a) {
  return rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"), a.rank());
}
int axis_of(const Node& node, const Value& a) {
  return rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), a.rank());
}

TensorType infer_statistic(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType& a = ctx.operand(0);
  const auto axes = rules::require_axes(ctx, ctx.attr<std::vector<std::int64_t>>("dims"), a.rank());
  return TensorType::contiguous(a.dtype, rules::reduced_shape(a.shape, axes, ctx.attr<bool>("keepdim")));
}

Value expand_mean(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const DType dtype = node.type.dtype;
  const bool keepdim = node.attrs.get<bool>("keepdim");
  const auto axes = axes_of(node, operands[0]);
  const Dim count = extent(operands[0].shape(), axes);
  return cast(div_size(sum_over(upcast(operands[0]), axes, keepdim), count), dtype);
}

/// a / max(count - correction, 0), as in PyTorch: one element with correction 1 gives NaN.
Value div_degrees(const Value& a, const Dim& count, std::int64_t correction) {
  const Dim degrees = count - Dim(correction);
  if (const auto number = degrees.value()) return div(a, std::max<std::int64_t>(*number, 0));
  const Value unclamped = sub(dim_value(a.builder(), count, a.dtype()), correction);
  return div(a, maximum(unclamped, 0.0));
}

Value expand_var(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const DType dtype = node.type.dtype;
  const bool keepdim = node.attrs.get<bool>("keepdim");
  const auto correction = node.attrs.get<std::int64_t>("correction");
  const auto axes = axes_of(node, operands[0]);
  const Dim count = extent(operands[0].shape(), axes);
  const Value a = upcast(operands[0]);
  const Value centered = sub(a, mean_keep(a, axes));
  return cast(div_degrees(sum_over(square(centered), axes, keepdim), count, correction), dtype);
}

/// d var / d a = 2 (a - mean) / (count - correction): the mean's own gradient cancels.
void var_gradient(const GradientContext& g) {
  const DType dtype = g.operand(0).dtype();
  const auto axes = axes_of(g.node, g.operand(0));
  const Dim count = extent(g.operand(0).shape(), axes);
  const Value a = upcast(g.operand(0));
  const Value centered = sub(a, mean_keep(a, axes));
  const Value grad = restore_dims(upcast(g.grad), axes, g.node.attrs.get<bool>("keepdim"));
  const Value scaled = div_degrees(mul(grad, 2.0), count, g.node.attrs.get<std::int64_t>("correction"));
  g.set(0, cast(mul(scaled, centered), dtype));
}

TensorType infer_logsumexp(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType& a = ctx.operand(0);
  const int axis = ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank());
  return TensorType::contiguous(a.dtype, rules::reduced_shape(a.shape, {axis}, ctx.attr<bool>("keepdim")));
}

/// log(sum(exp(a - m))) + m, with m the row's maximum, or 0 if that is infinite: a row of only -inf gives -inf.
Value expand_logsumexp(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const DType dtype = node.type.dtype;
  const bool keepdim = node.attrs.get<bool>("keepdim");
  const int axis = axis_of(node, operands[0]);
  const Value a = upcast(operands[0]);
  const Value top = max(a, {axis}, true);
  const Value finite = where(eq(abs(top), std::numeric_limits<double>::infinity()), 0.0, top);
  const Value shift = stop_gradient(finite);
  const Value result = add(log(sum(exp(sub(a, shift)), {axis}, true)), shift);
  return cast(keepdim ? result : contiguous(squeeze(result, axis)), dtype);
}

/// d logsumexp / d a = softmax(a) = exp(a - result).
void logsumexp_gradient(const GradientContext& g) {
  const DType dtype = g.operand(0).dtype();
  const int axis = axis_of(g.node, g.operand(0));
  const bool keepdim = g.node.attrs.get<bool>("keepdim");
  const Value result = restore_dims(upcast(g.result), {axis}, keepdim);
  const Value grad = restore_dims(upcast(g.grad), {axis}, keepdim);
  g.set(0, cast(mul(grad, exp(sub(upcast(g.operand(0)), result))), dtype));
}

TensorType infer_argmax(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::reals);
  const TensorType& a = ctx.operand(0);
  const int axis = ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank());
  rules::require_at_most(ctx, 1, a.shape[axis], "argmax_empty",
                         "dim " + std::to_string(axis) + " of " + rules::describe(ctx, 0) + " has no elements",
                         "the largest of nothing has no position: take argmax of a dim of size 1 or more");
  return TensorType::contiguous(i64, rules::reduced_shape(a.shape, {axis}, false));
}

/// Returns the smallest position of a maximum; NaN is treated as the maximum, as in PyTorch.
Value expand_argmax(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const Value& a = operands[0];
  const int axis = axis_of(node, a);
  const Shape shape = a.shape();
  Shape line(std::vector<Dim>(static_cast<std::size_t>(shape.rank()), Dim(1)));
  line.set(axis, shape[axis]);
  Value found = eq(a, max(a, {axis}, true));
  if (is_float(a.dtype())) found = logical_or(found, ne(a, a));
  const Value positions = iota(b, line, axis, i64);
  return min(where(found, positions, dim_value(b, shape[axis], i64)), {axis}, false);
}

Attributes reduce_attrs(std::vector<std::int64_t> dims, bool keepdim) {
  return {{"dims", std::move(dims)}, {"keepdim", keepdim}};
}

std::vector<Sample> mean_samples() {
  std::vector<Sample> samples = unary_composite_samples(reduce_attrs({-1}, false));
  const SampleOperand cube{{2, 3, 4}, f64, -2, 2};
  for (const Attributes& attrs :
       {reduce_attrs({0, 2}, true), reduce_attrs({0, 1, 2}, false), reduce_attrs({}, false)})
    samples.push_back({.operands = {cube}, .attrs = attrs});
  samples.push_back({.operands = {{{}, f64, -2, 2}}, .attrs = reduce_attrs({}, false)});
  return samples;
}

std::vector<Sample> var_samples() {
  std::vector<Sample> samples;
  for (const std::int64_t correction : {0, 1})
    for (const auto& [dims, keepdim] :
         std::vector<std::pair<std::vector<std::int64_t>, bool>>{{{-1}, false}, {{0, 2}, true}, {{0, 1, 2}, false}}) {
      Attributes attrs = reduce_attrs(dims, keepdim);
      attrs.set("correction", correction);
      samples.push_back({.operands = {{{2, 3, 4}, f64, -2, 2}}, .attrs = attrs});
    }
  Attributes plain = reduce_attrs({1}, false);
  plain.set("correction", std::int64_t{0});
  samples.push_back({.operands = {{{2, 1}, f64, -2, 2}}, .attrs = plain});
  samples.push_back({.operands = {{{0, 3}, f64, -2, 2}}, .attrs = plain});
  return samples;
}

std::vector<Sample> logsumexp_samples() {
  std::vector<Sample> samples = unary_composite_samples({{"dim", std::int64_t{-1}}});
  samples.push_back({.operands = {{{2, 3, 4}, f64, -2, 2}}, .attrs = {{"dim", std::int64_t{1}}, {"keepdim", true}}});
  return samples;
}

std::vector<Sample> argmax_samples() {
  std::vector<Sample> samples = unary_composite_samples({{"dim", std::int64_t{-1}}});
  samples.push_back({.operands = {{{3, 4}, i64, -2, 2}}, .attrs = {{"dim", std::int64_t{0}}}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op mean = composite("mean", "the mean over dims", {1, 1}, MixedPrecision::f32, mean_attrs,
                                    statistic_labels, infer_statistic, expand_mean, FromExpansion{}, mean_samples);

constinit const Op var = composite(
    "var", "the variance over dims: the sum of squared distances from the mean over count - correction", {1, 1},
    MixedPrecision::f32, var_attrs, statistic_labels, infer_statistic, expand_var, var_gradient, var_samples);

constinit const Op logsumexp = composite("logsumexp", "log(sum(exp(a))) over a dim, without overflow", {1, 1},
                                         MixedPrecision::f32, logsumexp_attrs, logsumexp_labels, infer_logsumexp,
                                         expand_logsumexp, logsumexp_gradient, logsumexp_samples);

constinit const Op argmax = composite("argmax", "the position, as i64, of the first maximum along a dim", {1, 1},
                                      MixedPrecision::follow, argmax_attrs, argmax_labels, infer_argmax,
                                      expand_argmax, NotDifferentiable{"a position is an integer"}, argmax_samples);

}  // namespace ops

}  // namespace lathe::ir
