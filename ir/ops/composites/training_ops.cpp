#include <fmt/core.h>

#include <limits>
#include <optional>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr AttrSpec cross_entropy_attrs[] = {
    {"ignore_index", AttrKind::integer, false, {}, "targets with this value are ignored"},
    {"label_smoothing", AttrKind::real, false, 0.0,
     "the share of the target probability that is spread over all classes"}};
constexpr AttrSpec dropout_attrs[] = {
    {"p", AttrKind::real, true, {}, "the probability of dropping an element"},
    {"stream", AttrKind::integer, true, {}, "distinguishes this draw from others that use the same random state"}};
constexpr std::string_view cross_entropy_labels[] = {"dtype_kind", "cross_entropy_rank", "cross_entropy_targets",
                                                     "cross_entropy_shape", "cross_entropy_smoothing"};
constexpr std::string_view dropout_labels[] = {"dtype_kind", "dropout_p", "dropout_state"};

TensorType infer_cross_entropy(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType &logits = ctx.operand(0), &targets = ctx.operand(1);
  ctx.require(logits.rank() >= 1, "cross_entropy_rank", fmt::format("{} has no classes", rules::describe(ctx, 0)),
              "the last dim of the logits is the classes");
  ctx.require(is_integer(targets.dtype), "cross_entropy_targets",
              fmt::format("{} must be integers", describe_role(ctx, 1, "targets")),
              "give the number of the right class, as i64");
  const auto message =
      fmt::format("{} do not fit {}", describe_role(ctx, 1, "targets"), describe_role(ctx, 0, "logits"));
  const auto hint = "targets have the shape of the logits without the last dim";
  ctx.require(targets.rank() == logits.rank() - 1, "cross_entropy_shape", message, hint);
  for (int i = 0; i < targets.rank(); ++i)
    ctx.require_equal(targets.shape[i], logits.shape[i], "cross_entropy_shape", message, hint);
  const double smoothing = ctx.attr<double>("label_smoothing");
  ctx.require(smoothing >= 0 && smoothing <= 1, "cross_entropy_smoothing",
              fmt::format("label_smoothing is {}", smoothing), "it must be between 0 and 1");
  return TensorType::contiguous(logits.dtype, {});
}

/// Shared by the loss and its gradient. Both build it the same way, so hash-consing merges their nodes.
struct LossParts {
  Value z;                     ///< logits minus the row's maximum, [.., C]
  Value exps;                  ///< exp(z), [.., C]
  Value total;                 ///< sum of exps, [.., 1]
  Value is_target;             ///< bool [.., C]
  std::optional<Value> valid;  ///< bool [.., 1]; absent if no row is ignored
  Value count;                 ///< the number of rows not ignored, a scalar
  Dim classes;
  double smoothing;
};

LossParts loss_parts(const Node& node, std::span<const Value> operands) {
  const double smoothing = node.attrs.get<double>("label_smoothing");
  std::optional<Number> ignored;
  if (const Attribute* found = node.attrs.find("ignore_index")) ignored = std::get<std::int64_t>(*found);
  const Shape shape = operands[0].shape();
  const int last = shape.rank() - 1;
  GraphBuilder& b = operands[0].builder();

  const Value z = less_row_max(upcast(operands[0]), last);
  const Value exps = exp(z);
  const Value total = sum(exps, {last}, true);
  Value target = unsqueeze(operands[1], -1);  // [.., 1]
  std::optional<Value> valid;
  if (ignored) {
    valid = ne(target, *ignored);
    target = where(*valid, target, 0.0);
  }
  // Compares positions in i32, which is half as wide, if it can hold all of them.
  const auto classes = shape[last].value();
  const DType position = classes && *classes <= std::numeric_limits<std::int32_t>::max() ? i32 : target.dtype();
  const Value checked = cast(checked_index(target, shape[last]), position);
  const Value is_target = eq(iota(b, {shape[last]}, 0, position), checked);
  const DType dtype = z.dtype();
  Shape rows = shape;
  rows.set(last, 1);
  const Value count = valid ? cast(sum(cast(*valid, i64)), dtype) : dim_value(b, rows.numel(), dtype);
  return {z, exps, total, is_target, valid, count, shape[last], smoothing};
}

/// Per row (1 - s) * (log(total) - z[target]) + s / C * sum(log(total) - z), then the mean over the rows not ignored.
/// Finds the target by comparing positions, so that everything is one pass over a row.
Value expand_cross_entropy(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const DType dtype = node.type.dtype;
  const LossParts parts = loss_parts(node, operands);
  const int last = parts.z.rank() - 1;
  const Value log_total = log(parts.total);
  // max selects the single target.
  const Value picked = max(where(parts.is_target, parts.z, -infinity), {last}, true);
  Value loss = sub(log_total, picked);
  if (parts.smoothing != 0) {
    const Value all = sub(mul_size(log_total, parts.classes), sum(parts.z, {last}, true));
    const Value spread = div_size(mul(all, parts.smoothing), parts.classes);
    loss = add(mul(loss, 1 - parts.smoothing), spread);
  }
  if (parts.valid) loss = where(*parts.valid, loss, 0.0);
  return cast(div(sum(loss), parts.count), dtype);
}

/// (softmax - smoothed target) * g / count on the rows not ignored, 0 on the others.
void cross_entropy_gradient(const GradientContext& g) {
  const DType dtype = g.operand(0).dtype();
  const LossParts parts = loss_parts(g.node, g.operands);
  Value goal = where(parts.is_target, full(g.builder, {}, 1 - parts.smoothing, parts.z.dtype()), 0.0);
  if (parts.smoothing != 0) {
    const Value share = constant(g.builder, parts.smoothing, parts.z.dtype());
    goal = add(goal, div_size(share, parts.classes));
  }
  const Value scale = div(upcast(g.grad), parts.count);
  Value grad = mul(sub(div(parts.exps, parts.total), goal), scale);
  if (parts.valid) grad = where(*parts.valid, grad, 0.0);
  g.set(0, cast(grad, dtype));
}

TensorType infer_dropout(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const double p = ctx.attr<double>("p");
  ctx.require(p >= 0 && p <= 1, "dropout_p", fmt::format("p is {}", p), "a probability must be between 0 and 1");
  const TensorType& state = ctx.operand(1);
  ctx.require(state.dtype == i64 && state.shape == Shape{2}, "dropout_state",
              fmt::format("{} is no random state", rules::describe(ctx, 1)),
              "give the random_state() of the Graph, an i64[2] that holds {seed, step}");
  const TensorType& a = ctx.operand(0);
  return TensorType::contiguous(a.dtype, a.shape);
}

/// Draws f32 for every dtype, so that a seed drops the same elements in all of them.
Value expand_dropout(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const double p = node.attrs.get<double>("p");
  const auto stream = node.attrs.get<std::int64_t>("stream");
  const TensorType type = operands[0].type();
  const Value keep = ge(random_uniform(operands[1], type.shape, f32, stream), p);
  const Value scale = constant(operands[0].builder(), p == 1 ? 0 : 1 / (1 - p), compute_dtype(type.dtype));
  return cast(mul(upcast(operands[0]), where(keep, scale, 0.0)), type.dtype);
}

std::vector<Sample> cross_entropy_samples() {
  const std::int64_t ignored = 1;
  std::vector<Sample> samples;
  const SampleOperand logits{{4, 3}, f64, -2, 2}, targets{{4}, i64, 0, 2};
  samples.push_back({.operands = {logits, targets}, .attrs = {}});
  samples.push_back({.operands = {logits, targets}, .attrs = {{"label_smoothing", 0.1}}});
  samples.push_back({.operands = {{{2, 8, 3}, f64, -2, 2}, {{2, 8}, i32, 0, 2}},
                     .attrs = {{"ignore_index", ignored}, {"label_smoothing", 0.2}}});
  samples.push_back(
      {.operands = {{{2, 8, 3}, f64, -2, 2}, {{2, 8}, i64, 0, 2}}, .attrs = {{"ignore_index", ignored}}});
  samples.push_back({.operands = {{{5}, f64, -2, 2}, {{}, i64, 0, 4}}, .attrs = {}});
  samples.push_back({.operands = {{{2, 1}, f64, -2, 2}, {{2}, i64, 0, 0}}, .attrs = {{"label_smoothing", 0.1}}});
  samples.push_back({.operands = {{{0, 3}, f64, -2, 2}, {{0}, i64, 0, 2}}, .attrs = {}});
  return samples;
}

std::vector<Sample> dropout_samples() {
  std::vector<Sample> samples;
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{3, 4}, {}, {1, 1}, {0, 3}})
    samples.push_back(
        {.operands = {{sizes, f64, -2, 2}, {{2}, i64, 0, 99}}, .attrs = {{"p", 0.4}, {"stream", std::int64_t{0}}}});
  for (const double p : {0.0, 1.0})
    samples.push_back(
        {.operands = {{{2, 3}, f64, -2, 2}, {{2}, i64, 0, 99}}, .attrs = {{"p", p}, {"stream", std::int64_t{3}}}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op cross_entropy =
    composite("cross_entropy",
              "the mean of -log softmax(logits)[target] over the targets that are not ignored, with label smoothing; "
              "NaN if all are ignored; any other target out of range is an error",
              {2, 2}, MixedPrecision::f32, cross_entropy_attrs, cross_entropy_labels, infer_cross_entropy,
              expand_cross_entropy, cross_entropy_gradient, cross_entropy_samples);

constinit const Op dropout = composite(
    "dropout",
    "sets each element to 0 with probability p, otherwise to a / (1 - p); the draw depends only on the state", {2, 2},
    MixedPrecision::follow, dropout_attrs, dropout_labels, infer_dropout, expand_dropout, FromExpansion{},
    dropout_samples);

}  // namespace ops

}  // namespace lathe::ir
