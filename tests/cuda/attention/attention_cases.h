#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

/// Attention variants for GPUs, small enough for the kernel interpreter.
namespace lathe::test {

struct AttentionCase {
  std::string name;
  ir::Graph graph;  ///< outputs "y" and gradients; symbolic dims N, S, and T for cross-attention
};

/// Causal, padding, window, ALiBi, soft cap, bias with its gradient, dropout, grouped heads, values wider than keys,
/// two-part scores, returned weights, queries after the keys of a cache; strided layouts; f32, f64, bf16, f16.
std::vector<AttentionCase> attention_cases();

/// Returns a causal attention of one head, [N, S, head] by [N, S, values], forward and backward.
ir::Graph causal_attention(DType dtype, std::int64_t head, std::int64_t values);
/// Returns an attention without a mask, of queries times `scale`; forward only.
ir::Graph scaled_attention(DType dtype, std::int64_t head, std::int64_t values, double scale);
/// Returns an attention of [N, S] rows and [N, T] columns, whose scores are `fill` where the input "mask" [N, S, T]
/// is false. Heads have 2 elements in f64, else 16; forward only.
ir::Graph masked_attention(DType dtype, double fill);
/// Returns the same as one op with heads of 16; fully masked rows yield zeros.
ir::Graph zero_masked_attention(DType dtype);

}  // namespace lathe::test
