#include <fmt/core.h>

#include <limits>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec attention_attrs[] = {
    {"scale", AttrKind::real, true, {}, "what the scores are multiplied by, such as 1/sqrt(d)"},
    {"causal", AttrKind::boolean, false, false, "query i sees keys 0 .. i only"},
    {"zero_masked", AttrKind::boolean, false, false, "a query that sees no key gives 0, not NaN"}};
constexpr std::string_view attention_labels[] = {"dtype_kind",      "dtype_match",      "attention_rank",
                                                 "attention_width", "attention_length", "attention_mask",
                                                 "broadcast"};
constexpr std::string_view rope_labels[] = {"dtype_kind", "dtype_match", "rope_even", "rope_shape"};

/// The dims before the last two.
Shape leading_dims(const Shape& shape) { return Shape(std::vector<Dim>(shape.begin(), shape.end() - 2)); }

void check_attention_mask(const InferContext& ctx, const Shape& scores) {
  const TensorType& mask = ctx.operand(3);
  ctx.require(mask.dtype == boolean || mask.dtype == ctx.operand(0).dtype, "attention_mask",
              fmt::format("{} is neither bool nor of the dtype of {}", describe_role(ctx, 3, "mask"),
                          rules::describe(ctx, 0)),
              "a bool mask is true where a query may see a key; any other is added to the scores");
  // The mask may add batch dims, never queries or keys.
  for (int k = 1; k <= std::min(2, mask.rank()); ++k) {
    const Dim &given = mask.shape[mask.rank() - k], &wanted = scores[scores.rank() - k];
    if (given.is(1)) continue;
    ctx.require_equal(
        given, wanted, "attention_mask",
        fmt::format("{} does not fit scores of shape {}", describe_role(ctx, 3, "mask"), scores.to_string()),
        "its last two dims are the queries and keys, or 1");
  }
}

TensorType infer_attention(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType &q = ctx.operand(0), &k = ctx.operand(1), &v = ctx.operand(2);
  for (int i = 0; i < 3; ++i) {
    ctx.require(ctx.operand(i).dtype == q.dtype, "dtype_match",
                fmt::format("{} and {} differ in dtype", rules::describe(ctx, 0), rules::describe(ctx, i)),
                fmt::format("no dtype is promoted silently: cast one of them, as in x.to({})", name(q.dtype)));
    ctx.require(ctx.operand(i).rank() >= 2, "attention_rank",
                fmt::format("{} has fewer than two dims", rules::describe(ctx, i)),
                "the last two dims are positions and features");
  }
  const auto dim = [](const TensorType& type, int from_end) { return type.shape[type.rank() - from_end]; };
  ctx.require_equal(
      dim(q, 1), dim(k, 1), "attention_width",
      fmt::format("queries and keys differ in width: {} and {}", rules::describe(ctx, 0), rules::describe(ctx, 1)),
      "their last dims must be equal");
  ctx.require_equal(
      dim(k, 2), dim(v, 2), "attention_length",
      fmt::format("keys and values differ in length: {} and {}", rules::describe(ctx, 1), rules::describe(ctx, 2)),
      "each key has one value");
  const auto batch_of = [&](const Shape& so_far, int i) {
    return rules::broadcast_shapes(ctx, so_far, leading_dims(ctx.operand(i).shape),
                                   fmt::format("{} and {}", rules::describe(ctx, 0), rules::describe(ctx, i)));
  };
  Shape scores = batch_of(leading_dims(q.shape), 1);
  scores.push_back(dim(q, 2));
  scores.push_back(dim(k, 2));
  if (ctx.arity() > 3) {
    check_attention_mask(ctx, scores);
    scores = rules::broadcast_shapes(ctx, scores, ctx.operand(3).shape,
                                     fmt::format("scores {} and {}", scores.to_string(), rules::describe(ctx, 3)));
  }
  Shape result = batch_of(leading_dims(scores), 2);
  result.push_back(scores[scores.rank() - 2]);
  result.push_back(dim(v, 1));
  return TensorType::contiguous(q.dtype, std::move(result));
}

Value expand_attention(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const double scale = node.attrs.get<double>("scale");
  const bool causal = node.attrs.get<bool>("causal");
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Value scores = mul(matmul(operands[0], transpose(operands[1], -2, -1)), scale);  // [.., q, k]
  if (operands.size() > 3) {
    const Value& mask = operands[3];
    scores = mask.dtype() == boolean ? where(mask, scores, hidden) : add(scores, mask);
  }
  if (causal) {
    const Shape shape = scores.shape();
    const Value query = iota(b, {shape[shape.rank() - 2], 1}, 0, i64);
    const Value key = iota(b, {1, shape[shape.rank() - 1]}, 1, i64);
    scores = where(le(key, query), scores, hidden);
  }
  return matmul(softmax(scores, -1, node.attrs.get<bool>("zero_masked")), operands[2]);
}

TensorType infer_rope(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  rules::require_same_dtype(ctx);
  const TensorType& x = ctx.operand(0);
  ctx.require(x.rank() >= 1 && x.shape[x.rank() - 1].divided_by(2), "rope_even",
              fmt::format("{} has no last dim of even size", rules::describe(ctx, 0)),
              "its two halves are the first and second coordinates of the pairs that are rotated");
  Shape shape = x.shape;
  for (int i = 1; i < 3; ++i) {
    const TensorType& angle = ctx.operand(i);
    const auto message = fmt::format("{} does not fit {}", describe_role(ctx, i, i == 1 ? "cosines" : "sines"),
                                     rules::describe(ctx, 0));
    const auto hint = "cos and sin broadcast to the shape of x, both halves of the last dim given";
    ctx.require(angle.rank() <= x.rank(), "rope_shape", message, hint);
    for (int k = 1; k <= angle.rank(); ++k) {
      const Dim& size = angle.shape[angle.rank() - k];
      if (size.is(1)) continue;
      ctx.require_equal(size, x.shape[x.rank() - k], "rope_shape", message, hint);
      shape.set(x.rank() - k, rules::broadcast_size(shape[x.rank() - k], size));
    }
  }
  return TensorType::contiguous(x.dtype, std::move(shape));
}

/// [x1, x2] -> [-x2, x1], the halves of the last dim.
Value rotate_half(const Value& x) {
  const int last = x.rank() - 1;
  const Dim size = x.shape()[last];
  const Dim half = *size.divided_by(2);
  const Value parts[] = {neg(slice(x, last, half, size)), slice(x, last, 0, half)};
  return concat(parts, last);
}

Value expand_rope(GraphBuilder&, const Node&, std::span<const Value> operands) {
  const Value &x = operands[0], &cos = operands[1], &sin = operands[2];
  return add(mul(x, cos), mul(rotate_half(x), sin));
}

/// The transpose of rotate_half is its negative: x gets g * cos - rotate_half(g * sin).
void rope_gradient(const GradientContext& g) {
  const Value &x = g.operand(0), &cos = g.operand(1), &sin = g.operand(2);
  if (g.needs(0)) g.set(0, sub(mul(g.grad, cos), rotate_half(mul(g.grad, sin))));
  if (g.needs(1)) g.set(1, mul(g.grad, x));
  if (g.needs(2)) g.set(2, mul(g.grad, rotate_half(x)));
}

std::vector<Sample> attention_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](const Sizes& q, const Sizes& k, const Sizes& v, bool causal) -> Sample& {
    samples.push_back({.operands = {{q, f64, -2, 2}, {k, f64, -2, 2}, {v, f64, -2, 2}},
                       .attrs = {{"scale", 0.5}, {"causal", causal}}});
    return samples.back();
  };
  sample({3, 2}, {4, 2}, {4, 3}, false);
  sample({2, 3, 2}, {2, 3, 2}, {2, 3, 2}, true);
  sample({2, 1, 3, 2}, {1, 2, 3, 2}, {2, 3, 1}, false);
  sample({0, 2}, {3, 2}, {3, 2}, false);
  sample({2, 3, 2}, {2, 4, 2}, {2, 4, 2}, false).operands.push_back({{3, 4}, f64, -2, 2});
  sample({2, 3, 2}, {2, 3, 2}, {2, 3, 2}, true).operands.push_back({{2, 1, 1, 3}, f64, -2, 2});
  sample({2, 3, 2}, {2, 3, 2}, {2, 3, 2}, true).attrs.set("zero_masked", true);
  return samples;
}

std::vector<Sample> rope_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  for (const auto& [x, angle] : std::vector<std::pair<Sizes, Sizes>>{
           {{2, 3, 4}, {3, 4}}, {{2}, {2}}, {{1, 3, 2}, {3, 1}}, {{0, 4}, {4}}, {{3, 2}, {}}})
    samples.push_back({.operands = {{x, f64, -2, 2}, {angle, f64, -1, 1}, {angle, f64, -1, 1}}, .attrs = {}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op attention = composite(
    "attention", "softmax(q k^T * scale, masked) v; a bool mask is true where a key is seen, any other is added",
    {3, 4}, MixedPrecision::low_precision, attention_attrs, attention_labels, infer_attention, expand_attention,
    FromExpansion{}, attention_samples);

constinit const Op rope =
    composite("rope", "rotary embedding in the half-split layout: x * cos + [-x2, x1] * sin", {3, 3},
              MixedPrecision::follow, {}, rope_labels, infer_rope, expand_rope, rope_gradient, rope_samples);

}  // namespace ops

}  // namespace lathe::ir
