#include <fmt/core.h>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr std::string_view dequantize_labels[] = {"dtype_kind", "dequantize_scales"};

/// Returns the number of adjacent elements that share a scale, or nothing unless there is one scale per block of the
/// last dim.
std::optional<std::int64_t> block_of(const Shape& q, const Shape& scales) {
  if (q.rank() == 0 || q.rank() != scales.rank()) return std::nullopt;
  const int last = q.rank() - 1;
  for (int i = 0; i < last; ++i)
    if (q[i] != scales[i]) return std::nullopt;
  const std::int64_t size = q[last].value().value_or(-1), blocks = scales[last].value().value_or(0);
  return blocks > 0 && size > 0 && size % blocks == 0 ? std::optional(size / blocks) : std::nullopt;
}

TensorType infer_dequantize(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::bytes);
  rules::require_kind(ctx, 1, rules::floats);
  const TensorType &q = ctx.operand(0), &scales = ctx.operand(1);
  ctx.require(block_of(q.shape, scales.shape).has_value(), "dequantize_scales",
              fmt::format("{} does not fit {}", rules::describe(ctx, 0), describe_role(ctx, 1, "scales")),
              "give q [.., n] scales [.., n / block], of known sizes n and n / block");
  return TensorType::contiguous(scales.dtype, q.shape);
}

Value expand_dequantize(GraphBuilder&, const Node&, std::span<const Value> operands) {
  const Value &q = operands[0], &scales = operands[1];
  Shape blocks = scales.shape();
  blocks.push_back(*block_of(q.shape(), scales.shape()));
  const DType dtype = scales.dtype(), compute = compute_dtype(dtype);
  const Value numbers = cast(reshape(q, blocks), compute);  // [.., n / block, block]
  const Value scaled = mul(numbers, unsqueeze(cast(scales, compute), -1));
  return reshape(cast(scaled, dtype), q.shape());
}

std::vector<Sample> dequantize_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](const Sizes& q, const Sizes& scales, DType byte, DType real = f64) {
    samples.push_back({.operands = {{q, byte, byte == u8 ? 0.0 : -127, 127}, {scales, real, 0, 2}}, .attrs = {}});
  };
  sample({2, 8}, {2, 2}, i8);
  sample({3, 2, 6}, {3, 2, 3}, i8);
  sample({5}, {1}, u8);
  sample({4, 3}, {4, 3}, i8);
  sample({0, 4}, {0, 2}, i8);
  sample({2, 4}, {2, 2}, i8, bf16);
  return samples;
}

}  // namespace

namespace ops {

constinit const Op dequantize = composite(
    "dequantize", "q * scale, where each block of neighbours in the last dim of q shares one of scales [.., blocks]",
    {2, 2}, MixedPrecision::follow, {}, dequantize_labels, infer_dequantize, expand_dequantize, FromExpansion{},
    dequantize_samples);

}  // namespace ops

}  // namespace lathe::ir
