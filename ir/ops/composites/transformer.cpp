#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec attention_attrs[] = {
    {"scale", AttrKind::real, true, {}, "the factor of the scores, such as 1/sqrt(d)"},
    {"causal", AttrKind::boolean, false, false,
     "query i sees only keys 0 .. i, even if there are more keys than queries"},
    {"offset", AttrKind::boolean, false, false,
     "the last operand is the position of the first query: query i sees keys 0 .. offset + i"},
    {"zero_masked", AttrKind::boolean, false, false, "a query that sees no key gives 0, not NaN"}};
constexpr std::string_view attention_labels[] = {"dtype_kind",       "dtype_match",      "attention_rank",
                                                 "attention_width",  "attention_length", "attention_mask",
                                                 "attention_offset", "broadcast"};
constexpr std::string_view rope_labels[] = {"dtype_kind", "dtype_match", "rope_even", "rope_shape"};

/// Returns the dims before the last two.
Shape leading_dims(const Shape& shape) { return Shape(std::vector<Dim>(shape.begin(), shape.end() - 2)); }

void check_attention_mask(const InferContext& ctx, const Shape& scores) {
  const TensorType& mask = ctx.operand(3);
  ctx.require(mask.dtype == boolean || mask.dtype == ctx.operand(0).dtype, "attention_mask",
              fmt::format("{} is neither bool nor of the dtype of {}", describe_role(ctx, 3, "mask"),
                          rules::describe(ctx, 0)),
              "a bool mask is true where a query may see a key; any other is added to the scores");
  // The mask may add batch dims, but not queries or keys.
  for (int k = 1; k <= std::min(2, mask.rank()); ++k) {
    const Dim &given = mask.shape[mask.rank() - k], &wanted = scores[scores.rank() - k];
    if (given.is(1)) continue;
    ctx.require_equal(
        given, wanted, "attention_mask",
        fmt::format("{} does not fit scores of shape {}", describe_role(ctx, 3, "mask"), scores.to_string()),
        "its last two dims are the queries and keys, or 1");
  }
}

bool has_offset(const Attributes& attrs) { return attrs.get<bool>("offset"); }

/// Returns the index of the mask operand, if given; the offset is the last operand.
std::optional<int> mask_operand(const Attributes& attrs, int arity) {
  if (arity - (has_offset(attrs) ? 1 : 0) > 3) return 3;
  return std::nullopt;
}

void check_attention_operands(const InferContext& ctx) {
  const bool offset = has_offset(ctx.attrs());
  ctx.require(!offset || ctx.attr<bool>("causal"), "attention_offset", "there is an offset, but causal is false",
              "an offset moves the diagonal of a causal attention: say causal=true, or give no offset");
  ctx.require(ctx.arity() != (offset ? 3 : 5), "attention_offset",
              fmt::format("{} operands are given, and offset is {}", ctx.arity(), offset),
              "operands are q, k and v, then the mask if there is one, then the offset if offset=true");
}

/// scores [.., n, m]
void check_attention_offset(const InferContext& ctx, Shape& scores) {
  const int last = ctx.arity() - 1;
  const TensorType& offset = ctx.operand(last);
  const std::string described = describe_role(ctx, last, "offset");
  ctx.require(offset.dtype == i64, "attention_offset", fmt::format("{} is not i64", described),
              "it is a number of keys: i64[], or i64[B] with one for each index of dim 0 of the scores");
  const auto message = fmt::format("{} does not fit scores of shape {}", described, scores.to_string());
  const auto hint = "give i64[], or i64[B] for scores [B, .., queries, keys]";
  ctx.require(offset.rank() == 0 || (offset.rank() == 1 && scores.rank() > 2), "attention_offset", message, hint);
  if (offset.rank() == 0) return;
  ctx.require_equal(offset.shape[0], scores[0], "attention_offset", message, hint);
  scores.set(0, rules::one_size(scores[0], offset.shape[0]));
}

TensorType infer_attention(const InferContext& ctx) {
  check_attention_operands(ctx);
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
  const auto with_rows = [](Shape batch) {  // so that an error counts dims as the operands do
    batch.push_back(Dim(1));
    batch.push_back(Dim(1));
    return batch;
  };
  const auto batch_of = [&](const Shape& so_far, int i) {
    return leading_dims(
        rules::broadcast_shapes(ctx, with_rows(so_far), with_rows(leading_dims(ctx.operand(i).shape)),
                                fmt::format("{} and {}", rules::describe(ctx, 0), rules::describe(ctx, i))));
  };
  Shape scores = batch_of(leading_dims(q.shape), 1);
  scores.push_back(dim(q, 2));
  scores.push_back(dim(k, 2));
  if (mask_operand(ctx.attrs(), ctx.arity())) {
    check_attention_mask(ctx, scores);
    scores = rules::broadcast_shapes(ctx, scores, ctx.operand(3).shape,
                                     fmt::format("scores {} and {}", scores.to_string(), rules::describe(ctx, 3)));
  }
  if (has_offset(ctx.attrs())) check_attention_offset(ctx, scores);
  Shape result = batch_of(leading_dims(scores), 2);
  result.push_back(scores[scores.rank() - 2]);
  result.push_back(dim(v, 1));
  return TensorType::contiguous(q.dtype, std::move(result));
}

/// bool [n, m], or [B, 1.., n, m] with a per-batch offset: the position of key j is at most that of query i.
Value causal_mask(GraphBuilder& b, const Shape& scores, const std::optional<Value>& offset) {
  Value query = iota(b, {scores[scores.rank() - 2], 1}, 0, i64);  // [n, 1]
  if (offset) {
    Value first = *offset;  // [] or [B, 1.., 1, 1]
    while (first.rank() != 0 && first.rank() < scores.rank()) first = unsqueeze(first, -1);
    query = add(query, first);
  }
  return le(iota(b, {1, scores[scores.rank() - 1]}, 1, i64), query);
}

Value expand_attention(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const double scale = node.attrs.get<double>("scale");
  const auto mask = mask_operand(node.attrs, static_cast<int>(operands.size()));
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Value scores = mul(matmul(operands[0], transpose(operands[1], -2, -1)), scale);  // [.., q, k]
  if (mask) {
    const Value& given = operands[*mask];
    scores = given.dtype() == boolean ? where(given, scores, hidden) : add(scores, given);
  }
  if (node.attrs.get<bool>("causal")) {
    const auto offset = has_offset(node.attrs) ? std::optional(operands.back()) : std::nullopt;
    scores = where(causal_mask(b, scores.shape(), offset), scores, hidden);
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

/// Maps [x1, x2], the halves of the last dim, to [-x2, x1].
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

/// The transpose of rotate_half is its negative, so the gradient of x is g * cos - rotate_half(g * sin).
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
  const auto with_offset = [](Sample& s, const Sizes& sizes, double low) {
    s.operands.push_back({sizes, i64, low, 3});
    s.attrs.set("offset", true);
    if (low < 0) s.attrs.set("zero_masked", true);
  };
  with_offset(sample({2, 2}, {4, 2}, {4, 3}, true), {}, 0);
  with_offset(sample({3, 1, 2}, {3, 4, 2}, {3, 4, 2}, true), {3}, -3);
  sample({3, 2, 2, 1}, {2, 3, 1}, {2, 3, 2}, true).operands.push_back({{2, 3}, boolean, 0, 1});
  with_offset(samples.back(), {3}, -1);
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
    "attention",
    "softmax(q k^T * scale, masked) v; a bool mask is true where a query sees a key, any other mask is added", {3, 5},
    MixedPrecision::low_precision, attention_attrs, attention_labels, infer_attention, expand_attention,
    FromExpansion{}, attention_samples);

constinit const Op rope =
    composite("rope", "rotary embedding in the half-split layout: x * cos + [-x2, x1] * sin", {3, 3},
              MixedPrecision::follow, {}, rope_labels, infer_rope, expand_rope, rope_gradient, rope_samples);

}  // namespace ops

}  // namespace lathe::ir
