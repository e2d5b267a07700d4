#include "ir/ops/composites/composite.h"

/// exp and log in forms that keep their relative accuracy near 0.
namespace lathe::ir {

namespace {

constexpr std::string_view near_zero_labels[] = {"dtype_kind"};

TensorType infer_floats(const InferContext& ctx) { return rules::elementwise_type(ctx, rules::floats); }

/// With w = 1 + a after rounding, log(w) * (a / (w - 1)) equals log(1 + a) to the last digits even for tiny a
/// (Goldberg 1991, theorem 4). Where w is a itself, infinities included, so is 1 + a.
Value expand_log1p(GraphBuilder&, const Node&, std::span<const Value> operands) {
  const Value a = upcast(operands[0]);
  const Value w = add(a, 1.0);
  const Value log_w = log(w);
  const Value corrected = where(eq(w, 1.0), a, mul(log_w, div(a, sub(w, 1.0))));
  return cast(where(eq(w, a), log_w, corrected), operands[0].dtype());
}
void log1p_gradient(const GradientContext& g) {
  g.set(0, cast(div(upcast(g.grad), add(upcast(g.operand(0)), 1.0)), g.operand(0).dtype()));
}

/// With u = e^a after rounding, (u - 1) * (a / log(u)) equals e^a - 1 to the last digits (Kahan; Higham 2002, section
/// 1.14.1). Further from 0, u - 1 cancels little, and log(u) may be infinite.
Value expand_expm1(GraphBuilder&, const Node&, std::span<const Value> operands) {
  const Value a = upcast(operands[0]);
  const Value u = exp(a);
  const Value less = sub(u, 1.0);
  const Value corrected = where(eq(u, 1.0), a, mul(less, div(a, log(u))));
  return cast(where(gt(abs(a), 1.0), less, corrected), operands[0].dtype());
}
void expm1_gradient(const GradientContext& g) {
  g.set(0, cast(mul(upcast(g.grad), exp(upcast(g.operand(0)))), g.operand(0).dtype()));
}

}  // namespace

namespace ops {

constinit const Op log1p =
    composite("log1p", "log(1 + a), accurate near 0", {1, 1}, MixedPrecision::f32, {}, near_zero_labels, infer_floats,
              expand_log1p, log1p_gradient, [] { return unary_composite_samples({}, -0.5, 3); });

constinit const Op expm1 = composite("expm1", "e to the power a, minus 1, accurate near 0", {1, 1},
                                     MixedPrecision::f32, {}, near_zero_labels, infer_floats, expand_expm1,
                                     expm1_gradient, [] { return unary_composite_samples({}); });

}  // namespace ops

}  // namespace lathe::ir
