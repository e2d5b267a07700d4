#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

/// Attentions for GPUs: small enough for the kernel interpreter, of every kind.
namespace lathe::test {

struct AttentionCase {
  std::string name;
  ir::Graph graph;  ///< "y" and gradients; unknown dims N, S, and T where it is across
};

/// Causal, padding, window, ALiBi, soft cap, bias with its gradient, dropout, grouped heads, values wider than keys,
/// scores of two parts, weights that are returned, queries behind the keys of a cache; strided layouts; f32, f64,
/// bf16, f16.
std::vector<AttentionCase> attention_cases();

/// A causal attention of one head, [N, S, head] by [N, S, values], forward and backward.
ir::Graph causal_attention(DType dtype, std::int64_t head, std::int64_t values);
/// One without a mask, of queries times `scale`; the result alone.
ir::Graph scaled_attention(DType dtype, std::int64_t head, std::int64_t values, double scale);
/// One of [N, S] rows and [N, T] columns, whose scores are `fill` where the input "mask" [N, S, T] is false: heads of
/// 2 in f64, else of 16; the result alone.
ir::Graph masked_attention(DType dtype, double fill);
/// The same as one op, with heads of 16, whose rows that are masked wholly give zeros.
ir::Graph zero_masked_attention(DType dtype);

}  // namespace lathe::test
