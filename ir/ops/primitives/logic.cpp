#include <fmt/core.h>

#include "ir/ops/primitives/elementwise.h"

namespace lathe::ir::ops {

namespace {

using std::span;

constexpr NotDifferentiable comparison{"the result is bool: a comparison has no derivative"};
constexpr NotDifferentiable boolean_logic{"its operands are bool"};

std::vector<Sample> equality_samples() { return binary_samples(-2, 2, {f64, i64, i32, boolean, c128}); }
std::vector<Sample> order_samples() { return binary_samples(-2, 2, {f64, i64, i32, i8}); }
std::vector<Sample> logic_samples() { return binary_samples(0, 1, {boolean}, 0, 1); }

TensorType where_infer(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::booleans);
  const DType dtype = rules::require_same_dtype(ctx, 1);
  // The values determine the names of the result's dims before the condition does.
  const Shape values = rules::broadcast_operands(ctx, 1);
  const std::string what = fmt::format("{} and {}", rules::describe(ctx, 1), rules::describe(ctx, 0));
  return TensorType::contiguous(dtype, rules::broadcast_shapes(ctx, values, ctx.operand(0).shape, what));
}

/// Uses where instead of a product, because 0 times an infinite gradient would be NaN.
void where_gradient(const GradientContext& g) {
  const Value zero = ir::constant(g.builder, 0, g.node.type.dtype);
  if (g.needs(1)) g.set(1, ir::where(g.operand(0), g.grad, zero));
  if (g.needs(2)) g.set(2, ir::where(g.operand(0), zero, g.grad));
}

std::vector<Sample> where_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](const Sizes& c, const Sizes& a, const Sizes& b, DType dtype) {
    samples.push_back({.operands = {{c, boolean, 0, 1}, {a, dtype}, {b, dtype}}, .attrs = {}});
  };
  for (const DType dtype : {f64, i64, i8, boolean, c128}) sample({2, 3}, {2, 3}, {2, 3}, dtype);
  sample({3}, {2, 3}, {}, f64);
  sample({2, 1}, {}, {3}, f64);
  sample({2, 3}, {1, 1}, {2, 1}, f64);
  sample({0, 1}, {3}, {1}, f64);
  return samples;
}

TensorType cast_infer(const InferContext& ctx) {
  const DType from = ctx.operand(0).dtype, to = ctx.attr<DType>("dtype");
  ctx.require(is_complex(from) == is_complex(to), "cast_complex",
              fmt::format("there is no cast from {} to {}", name(from), name(to)),
              "view_as_complex and view_as_real convert between complex numbers and pairs of reals");
  return TensorType::contiguous(to, ctx.operand(0).shape);
}

void cast_gradient(const GradientContext& g) {
  const DType dtype = g.operand(0).dtype();
  if (is_float(dtype) || is_complex(dtype)) g.set(0, ir::cast(g.grad, dtype));
}

std::vector<Sample> cast_samples() {
  std::vector<Sample> samples;
  const auto sample = [&](std::vector<std::int64_t> sizes, DType from, DType to, double low, double high) {
    samples.push_back({.operands = {{std::move(sizes), from, low, high}}, .attrs = {{"dtype", to}}});
  };
  sample({2, 3}, f64, f64, -2, 2);
  sample({2, 3}, f64, f32, -2, 2);
  sample({2, 3}, f64, bf16, -2, 2);
  sample({2, 3}, f32, f16, -2, 2);
  sample({2, 3}, f64, i32, -9, 9);
  sample({2, 3}, i64, f64, -9, 9);
  sample({2, 3}, f64, i8, -200, 200);
  sample({2, 3}, f32, u8, -200, 400);
  sample({2, 3}, i64, u8, -200, 400);
  sample({2, 3}, i8, f32, -128, 127);
  sample({2, 3}, i8, u8, -128, 127);
  sample({2, 3}, u8, i32, 0, 255);
  sample({2, 3}, i32, boolean, -1, 1);
  sample({2, 3}, boolean, f32, 0, 1);
  sample({2, 3}, c128, c64, -2, 2);
  sample({1, 0}, f64, f32, -2, 2);
  return samples;
}

constexpr AttrSpec cast_attrs[] = {{"dtype", AttrKind::dtype, true, {}, "the dtype of the result"}};
constexpr std::string_view equality_labels[] = {"dtype_match", "broadcast"};  // any dtype
constexpr std::string_view cast_labels[] = {"cast_complex"};
constexpr std::string_view where_labels[] = {"dtype_kind", "dtype_match", "broadcast"};

}  // namespace

constinit const Op eq = binary(
    "eq", "whether a equals b, broadcast; false with NaN", ScalarOp::eq, MixedPrecision::follow,
    [](span<const double> x) { return x[0] == x[1] ? 1.0 : 0.0; }, infer_comparison<rules::anything>, comparison,
    equality_samples, equality_labels);

constinit const Op ne = binary(
    "ne", "whether a differs from b, broadcast; true with NaN", ScalarOp::ne, MixedPrecision::follow,
    [](span<const double> x) { return x[0] != x[1] ? 1.0 : 0.0; }, infer_comparison<rules::anything>, comparison,
    equality_samples, equality_labels);

constinit const Op lt = binary(
    "lt", "whether a is less than b, broadcast; false with NaN", ScalarOp::lt, MixedPrecision::follow,
    [](span<const double> x) { return x[0] < x[1] ? 1.0 : 0.0; }, infer_comparison<rules::reals | rules::bytes>,
    comparison, order_samples);

constinit const Op le = binary(
    "le", "whether a is less than or equal to b, broadcast; false with NaN", ScalarOp::le, MixedPrecision::follow,
    [](span<const double> x) { return x[0] <= x[1] ? 1.0 : 0.0; }, infer_comparison<rules::reals | rules::bytes>,
    comparison, order_samples);

constinit const Op logical_and = binary(
    "logical_and", "whether both are true, broadcast", ScalarOp::logical_and, MixedPrecision::follow,
    [](span<const double> x) { return x[0] != 0 && x[1] != 0 ? 1.0 : 0.0; }, infer_same<rules::booleans>,
    boolean_logic, logic_samples);

constinit const Op logical_or = binary(
    "logical_or", "whether either is true, broadcast", ScalarOp::logical_or, MixedPrecision::follow,
    [](span<const double> x) { return x[0] != 0 || x[1] != 0 ? 1.0 : 0.0; }, infer_same<rules::booleans>,
    boolean_logic, logic_samples);

constinit const Op logical_not = unary(
    "logical_not", "true for false, false for true", ScalarOp::logical_not, MixedPrecision::follow,
    [](span<const double> x) { return x[0] == 0 ? 1.0 : 0.0; }, infer_same<rules::booleans>, boolean_logic,
    [] { return unary_samples(0, 1, {boolean}); });

constinit const Op where = {
    .name = "where",
    .doc = "a where the condition is true, b elsewhere; all three broadcast",
    .arity = Arity{3, 3},
    .attrs = std::span<const AttrSpec>(),
    .labels = where_labels,
    .infer = where_infer,
    .meaning = Elementwise{ScalarOp::select, [](span<const double> x) { return x[0] != 0 ? x[1] : x[2]; }},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(where_gradient),
    .samples = where_samples,
};

constinit const Op cast = {
    .name = "cast",
    .doc = "a in another dtype; to an integer it truncates and saturates (NaN gives 0), to bool it is a != 0",
    .arity = Arity{1, 1},
    .attrs = cast_attrs,
    .labels = cast_labels,
    .infer = cast_infer,
    .meaning = Elementwise{ScalarOp::cast, [](span<const double> x) { return x[0]; }},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(cast_gradient),
    .samples = cast_samples,
};

}  // namespace lathe::ir::ops
