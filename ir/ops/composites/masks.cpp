#include <fmt/core.h>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec fill_attrs[] = {{"value", AttrKind::number, true, {}, "the value where the mask is true"}};
constexpr AttrSpec triangle_attrs[] = {
    {"diagonal", AttrKind::integer, false, std::int64_t{0}, "0 is the main diagonal, 1 the one above it"}};
constexpr AttrSpec one_hot_attrs[] = {{"classes", AttrKind::dim, true, {}, "the size of the new last dim"},
                                      {"dtype", AttrKind::dtype, true, {}, "the dtype of the result"}};
constexpr std::string_view fill_labels[] = {"masked_fill_mask", "masked_fill_value", "broadcast"};
constexpr std::string_view straight_through_labels[] = {"dtype_match", "dtype_kind", "straight_through_shape"};
constexpr std::string_view triangle_labels[] = {"dtype_kind", "triangle_rank"};
constexpr std::string_view one_hot_labels[] = {"dtype_kind", "one_hot_classes"};

TensorType infer_masked_fill(const InferContext& ctx) {
  const TensorType& mask = ctx.operand(1);
  ctx.require(mask.dtype == boolean, "masked_fill_mask",
              fmt::format("{} must be bool", describe_role(ctx, 1, "mask")),
              "compare it with a number first, as in mask == 0");
  const DType dtype = ctx.operand(0).dtype;
  const auto& value = ctx.attr<Number>("value");
  ctx.require(value.fits(dtype), "masked_fill_value",
              fmt::format("{} is no value of {}", value.to_string(), rules::describe(ctx, 0)),
              "give a value that the dtype has, or cast the tensor first");
  return TensorType::contiguous(dtype, rules::broadcast_operands(ctx));
}

Value expand_masked_fill(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  return where(operands[1], node.attrs.get<Number>("value"), operands[0]);
}

TensorType infer_triangle(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::reals | rules::booleans);
  const TensorType& a = ctx.operand(0);
  ctx.require(a.rank() >= 2, "triangle_rank", fmt::format("{} is no matrix", rules::describe(ctx, 0)),
              "give a tensor of two dims or more; the last two are the rows and columns");
  return TensorType::contiguous(a.dtype, a.shape);
}

/// Returns column - row for each element of the last two dims: i64[rows, columns].
Value offsets_from_diagonal(GraphBuilder& b, const Shape& shape) {
  const Dim rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const Value row = iota(b, {rows, 1}, 0, i64);
  const Value column = iota(b, {1, columns}, 1, i64);
  return sub(column, row);
}

Value expand_tril(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const auto diagonal = node.attrs.get<std::int64_t>("diagonal");
  const Shape shape = operands[0].shape();
  return where(le(offsets_from_diagonal(b, shape), diagonal), operands[0], 0.0);
}

Value expand_triu(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const auto diagonal = node.attrs.get<std::int64_t>("diagonal");
  const Shape shape = operands[0].shape();
  return where(ge(offsets_from_diagonal(b, shape), diagonal), operands[0], 0.0);
}

TensorType infer_one_hot(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::integers);
  const Dim& classes = ctx.attr<Dim>("classes");
  rules::require_at_most(ctx, 0, classes, "one_hot_classes",
                         fmt::format("there cannot be {} classes", classes.to_string()), "give a size of 0 or more");
  const DType dtype = ctx.attr<DType>("dtype");
  ctx.require(!is_complex(dtype), "dtype_kind", fmt::format("a one-hot tensor cannot be {}", name(dtype)),
              "use a float or integer dtype, or bool");
  Shape shape = ctx.operand(0).shape;
  shape.push_back(classes);
  return TensorType::contiguous(dtype, std::move(shape));
}

Value expand_one_hot(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const Dim classes = node.attrs.get<Dim>("classes");
  const DType dtype = node.attrs.get<DType>("dtype");
  const DType index = operands[0].dtype();
  return cast(eq(unsqueeze(operands[0], -1), iota(b, {classes}, 0, index)), dtype);
}

TensorType infer_same_as_operand(const InferContext& ctx) { return ctx.operand(0); }

Value expand_first_operand(GraphBuilder&, const Node&, std::span<const Value> operands) { return operands[0]; }

TensorType infer_straight_through(const InferContext& ctx) {
  rules::require_same_dtype(ctx);
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType &value = ctx.operand(0), &path = ctx.operand(1);
  const auto message = fmt::format("{} and {} differ in shape", rules::describe(ctx, 0), rules::describe(ctx, 1));
  constexpr std::string_view hint = "the gradient of the result is that of the path, so expand the one or the other";
  ctx.require(value.rank() == path.rank(), "straight_through_shape", message, hint);
  for (int d = 0; d < value.rank(); ++d)
    ctx.require_equal(value.shape[d], path.shape[d], "straight_through_shape", message, hint);
  return value;
}

void straight_through_gradient(const GradientContext& g) {
  if (g.needs(1)) g.set(1, g.grad);
}

std::vector<Sample> straight_through_samples() {
  std::vector<Sample> samples;
  using Sizes = std::vector<std::int64_t>;
  for (const Sizes& sizes : {Sizes{2, 3}, Sizes{}, Sizes{0, 3}, Sizes{1, 2}})
    samples.push_back({.operands = {{sizes, f64, -2, 2}, {sizes, f64, -2, 2}}, .attrs = {}});
  return samples;
}

std::vector<Sample> masked_fill_samples() {
  std::vector<Sample> samples;
  using Sizes = std::vector<std::int64_t>;
  for (const auto& [a, mask] : std::vector<std::pair<Sizes, Sizes>>{
           {{2, 3}, {2, 3}}, {{2, 2, 3}, {1, 3}}, {{3}, {2, 1}}, {{}, {}}, {{0, 3}, {3}}})
    samples.push_back({.operands = {{a, f64, -2, 2}, {mask, boolean, 0, 1}}, .attrs = {{"value", -3.0}}});
  samples.push_back({.operands = {{{2, 3}, i64, -2, 2}, {{2, 3}, boolean, 0, 1}}, .attrs = {{"value", 7.0}}});
  samples.push_back({.operands = {{{2}, i64, -2, 2}, {{2}, boolean, 0, 1}}, .attrs = {{"value", INT64_MAX}}});
  return samples;
}

std::vector<Sample> triangle_samples() {
  std::vector<Sample> samples;
  for (const auto& [sizes, diagonal] : std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>>{
           {{3, 3}, 0}, {{2, 3, 4}, 1}, {{4, 2}, -1}, {{1, 1}, 0}, {{0, 3}, 0}})
    samples.push_back({.operands = {{sizes, f64, -2, 2}}, .attrs = {{"diagonal", diagonal}}});
  samples.push_back({.operands = {{{3, 3}, i64, -4, 4}}, .attrs = {}});
  samples.push_back({.operands = {{{3, 3}, boolean, 0, 1}}, .attrs = {}});
  return samples;
}

std::vector<Sample> one_hot_samples() {
  std::vector<Sample> samples;
  for (const DType dtype : {f64, i64, boolean})
    samples.push_back({.operands = {{{2, 3}, i64, 0, 4}}, .attrs = {{"classes", Dim(5)}, {"dtype", dtype}}});
  samples.push_back({.operands = {{{2}, i32, -1, 3}}, .attrs = {{"classes", Dim(2)}, {"dtype", f32}}});
  samples.push_back({.operands = {{{}, i64, 0, 2}}, .attrs = {{"classes", Dim(3)}, {"dtype", f64}}});
  samples.push_back({.operands = {{{2, 1}, i64, 0, 2}}, .attrs = {{"classes", Dim(3)}, {"dtype", f64}}});
  samples.push_back({.operands = {{{0}, i64, 0, 2}}, .attrs = {{"classes", Dim(1)}, {"dtype", f64}}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op masked_fill =
    composite("masked_fill", "value where the mask is true, a elsewhere; broadcast", {2, 2}, MixedPrecision::follow,
              fill_attrs, fill_labels, infer_masked_fill, expand_masked_fill, FromExpansion{}, masked_fill_samples);

constinit const Op tril =
    composite("tril", "a on and below a diagonal of the last two dims, 0 above", {1, 1}, MixedPrecision::follow,
              triangle_attrs, triangle_labels, infer_triangle, expand_tril, FromExpansion{}, triangle_samples);

constinit const Op triu =
    composite("triu", "a on and above a diagonal of the last two dims, 0 below", {1, 1}, MixedPrecision::follow,
              triangle_attrs, triangle_labels, infer_triangle, expand_triu, FromExpansion{}, triangle_samples);

constinit const Op one_hot =
    composite("one_hot", "1 where the position in the new last dim is the index; all 0 for an index out of range",
              {1, 1}, MixedPrecision::follow, one_hot_attrs, one_hot_labels, infer_one_hot, expand_one_hot,
              NotDifferentiable{"an index is an integer"}, one_hot_samples);

constinit const Op stop_gradient =
    composite("stop_gradient", "a itself; no gradient flows through it", {1, 1}, MixedPrecision::follow, {}, {},
              infer_same_as_operand, expand_first_operand, NotDifferentiable{"stop_gradient blocks gradients"},
              [] { return unary_composite_samples({}); });

constinit const Op straight_through =
    composite("straight_through", "value; the gradient flows to path, as if it were the result", {2, 2},
              MixedPrecision::follow, {}, straight_through_labels, infer_straight_through, expand_first_operand,
              straight_through_gradient, straight_through_samples);

}  // namespace ops

}  // namespace lathe::ir
