#include <algorithm>

#include <fmt/core.h>

#include "ir/ops/composites/composite.h"
#include "ir/ops/einsum.h"

namespace lathe::ir {

namespace {

constexpr std::string_view matmul_labels[] = {"dtype_kind", "dtype_match", "matmul_rank", "matmul_inner",
                                              "matmul_batch"};
constexpr std::string_view linear_labels[] = {"dtype_kind",    "dtype_match",  "linear_rank",
                                              "linear_weight", "linear_inner", "linear_bias"};

/// A contraction needs a letter per dim.
constexpr int most_dims = 32;

/// An operand of matmul: batch dims, rows and columns. A vector has no rows (left) or columns (right).
struct Side {
  int batch, inner, outer;  ///< number of batch dims; positions of the two others, or -1
};
Side left_side(int rank) { return rank == 1 ? Side{0, 0, -1} : Side{rank - 2, rank - 1, rank - 2}; }
Side right_side(int rank) { return rank == 1 ? Side{0, 0, -1} : Side{rank - 2, rank - 2, rank - 1}; }

/// Returns batch dim `k`, counted from the end, or null if the operand has fewer.
const Dim* batch_dim(const Shape& shape, const Side& side, int k) {
  return k <= side.batch ? &shape[side.batch - k] : nullptr;
}

Dim matmul_batch_dim(const InferContext& ctx, const Dim& a, const Dim& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  ctx.require_equal(a, b, "matmul_batch",
                    fmt::format("the batch dims of {} and {} do not broadcast: {} against {}",
                                rules::describe(ctx, 0), rules::describe(ctx, 1), a.to_string(), b.to_string()),
                    "dims before the last two must be equal or 1");
  return rules::one_size(a, b);
}

TensorType infer_matmul(const InferContext& ctx) {
  const DType dtype = rules::require_same_dtype(ctx);
  for (int i = 0; i < 2; ++i) {
    rules::require_kind(ctx, i, rules::reals);
    ctx.require(ctx.operand(i).rank() >= 1, "matmul_rank", fmt::format("{} is a scalar", rules::describe(ctx, i)),
                "multiply by a scalar with *");
    ctx.require(ctx.operand(i).rank() <= most_dims, "matmul_rank",
                fmt::format("operand {} has {} dims", i, ctx.operand(i).rank()), "at most 32 dims can be multiplied");
  }
  const Shape &a = ctx.operand(0).shape, &b = ctx.operand(1).shape;
  const Side left = left_side(a.rank()), right = right_side(b.rank());
  const Dim &inner_a = a[left.inner], &inner_b = b[right.inner];
  const bool flipped = b.rank() > 1 && b[right.outer] == inner_a;
  ctx.require_equal(inner_a, inner_b, "matmul_inner",
                    fmt::format("{} and {} do not fit: {} columns against {} rows", rules::describe(ctx, 0),
                                rules::describe(ctx, 1), inner_a.to_string(), inner_b.to_string()),
                    flipped ? "did you mean the second operand transposed, .transpose(-2, -1)?"
                            : "the last dim of the first must be the last but one of the second");
  Shape shape;
  for (int k = std::max(left.batch, right.batch); k >= 1; --k) {
    const Dim *of_a = batch_dim(a, left, k), *of_b = batch_dim(b, right, k);
    shape.push_back(of_a && of_b ? matmul_batch_dim(ctx, *of_a, *of_b) : (of_a ? *of_a : *of_b));
  }
  if (left.outer >= 0) shape.push_back(a[left.outer]);
  if (right.outer >= 0) shape.push_back(b[right.outer]);
  return TensorType::contiguous(dtype, std::move(shape));
}

/// Labels one operand's dims. A batch dim of size 1 that the other operand has too is squeezed, so that the other's
/// dim is free: nothing is repeated in memory.
struct LabelledSide {
  Value value;
  std::string labels;
};
LabelledSide label_side(const Value& operand, const Side& side, char outer, const Shape& other,
                        const Side& other_side, bool drop_if_both_are_1) {
  LabelledSide result{operand, std::string(static_cast<std::size_t>(operand.rank()), 'k')};
  if (side.outer >= 0) result.labels[side.outer] = outer;
  const Shape shape = operand.shape();
  for (int k = 1; k <= side.batch; ++k) {
    const int at = side.batch - k;  // from the last batch dim to the first
    const Dim* facing = batch_dim(other, other_side, k);
    if (facing && shape[at].is(1) && (!facing->is(1) || drop_if_both_are_1)) {
      result.value = squeeze(result.value, at);
      result.labels.erase(static_cast<std::size_t>(at), 1);
    } else {
      result.labels[at] = static_cast<char>(k);
    }
  }
  return result;
}

Value expand_matmul(GraphBuilder&, const Node&, std::span<const Value> operands) {
  const Shape a = operands[0].shape(), b = operands[1].shape();
  const Side left = left_side(a.rank()), right = right_side(b.rank());
  const LabelledSide lhs = label_side(operands[0], left, 'm', b, right, false);
  const LabelledSide rhs = label_side(operands[1], right, 'n', a, left, true);
  std::string out;
  for (int k = std::max(left.batch, right.batch); k >= 1; --k) out += static_cast<char>(k);
  if (left.outer >= 0) out += 'm';
  if (right.outer >= 0) out += 'n';
  return multiply_labelled(lhs.value, lhs.labels, rhs.value, rhs.labels, out);
}

TensorType infer_linear(const InferContext& ctx) {
  const DType dtype = rules::require_same_dtype(ctx);
  for (int i = 0; i < ctx.arity(); ++i) rules::require_kind(ctx, i, rules::reals);
  const TensorType &x = ctx.operand(0), &weight = ctx.operand(1);
  ctx.require(x.rank() >= 1 && x.rank() <= most_dims, "linear_rank",
              fmt::format("{} has {} dims", rules::describe(ctx, 0), x.rank()),
              "give 1 to 32, the last one the features");
  ctx.require(weight.rank() == 2, "linear_weight", fmt::format("{} is no matrix", describe_role(ctx, 1, "weight")),
              "it must be [out features, in features]");
  const Dim &features = x.shape[x.rank() - 1], &out = weight.shape[0];
  ctx.require_equal(features, weight.shape[1], "linear_inner",
                    fmt::format("{} has {} features, {} takes {}", rules::describe(ctx, 0), features.to_string(),
                                describe_role(ctx, 1, "weight"), weight.shape[1].to_string()),
                    features == out ? "the weight is [out, in]: did you mean it transposed, .transpose(0, 1)?"
                                    : "the weight must be [out features, in features]");
  if (ctx.arity() > 2) {
    const TensorType& bias = ctx.operand(2);
    const auto message =
        fmt::format("{} does not fit {}", describe_role(ctx, 2, "bias"), describe_role(ctx, 1, "weight"));
    const auto hint = fmt::format("it must be [{}]", out.to_string());
    ctx.require(bias.rank() == 1, "linear_bias", message, hint);
    ctx.require_equal(bias.shape[0], out, "linear_bias", message, hint);
  }
  Shape shape = x.shape;
  shape.set(x.rank() - 1, ctx.arity() > 2 ? rules::broadcast_size(out, ctx.operand(2).shape[0]) : out);
  return TensorType::contiguous(dtype, std::move(shape));
}

Value expand_linear(GraphBuilder&, const Node&, std::span<const Value> operands) {
  std::string rows;
  for (int i = 1; i < operands[0].rank(); ++i) rows += static_cast<char>(i);
  const Value product = multiply_labelled(operands[0], rows + 'k', operands[1], "nk", rows + 'n');
  return operands.size() > 2 ? add(product, operands[2]) : product;
}

std::vector<Sample> matmul_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](const Sizes& a, const Sizes& b, DType dtype = f64) {
    samples.push_back({.operands = {{a, dtype, -2, 2}, {b, dtype, -2, 2}}, .attrs = {}});
  };
  sample({2, 3}, {3, 4});
  sample({2, 3}, {3, 4}, i64);
  sample({3}, {3});
  sample({3}, {2, 3, 4});
  sample({2, 2, 3}, {3});
  sample({2, 2, 3}, {3, 4});
  sample({2, 3}, {2, 3, 2});
  sample({2, 1, 2, 3}, {3, 3, 2});
  sample({1, 2, 3}, {2, 1, 3, 2});
  sample({1, 1, 3}, {1, 3, 1});
  sample({2, 0}, {0, 3});
  sample({0, 2, 3}, {3, 2});
  return samples;
}

std::vector<Sample> linear_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](const Sizes& x, bool bias) {
    samples.push_back({.operands = {{x, f64, -2, 2}, {{4, 3}, f64, -2, 2}}, .attrs = {}});
    if (bias) samples.back().operands.push_back({{4}, f64, -2, 2});
  };
  sample({2, 3}, false);
  sample({2, 2, 3}, true);
  sample({3}, true);
  sample({1, 3}, true);
  sample({0, 3}, true);
  return samples;
}

}  // namespace

namespace ops {

constinit const Op matmul = composite(
    "matmul", "the matrix product, batched and broadcast as in torch.matmul; the dim of a vector operand is removed",
    {2, 2}, MixedPrecision::low_precision, {}, matmul_labels, infer_matmul, expand_matmul, FromExpansion{},
    matmul_samples);

constinit const Op linear = composite(
    "linear", "x [.., in] times the transpose of weight [out, in], plus bias [out] if given", {2, 3},
    MixedPrecision::low_precision, {}, linear_labels, infer_linear, expand_linear, FromExpansion{}, linear_samples);

}  // namespace ops

}  // namespace lathe::ir
