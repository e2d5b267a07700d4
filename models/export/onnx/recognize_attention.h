#pragma once

#include <optional>
#include <span>

#include "ir/tensor/builder.h"

namespace lathe::onnx {

/// Whether ONNX's Attention computes the attention of q [B, h, S, d], k and v [B, h or 1, T, d], with a float mask
/// for all queries and keys or for some of them. A causal mask needs as many queries as keys. A bool mask may hide
/// all keys of a query, for which runtimes differ: ONNX Runtime gives 0, and the steps NaN.
bool is_onnx_attention(std::span<const ir::Value> operands, bool is_causal);

/// Returns the op `attention` for the last product of an attention that is written in steps,
///   matmul(softmax(masked(matmul(q, k^T) * scale)), v),
/// if ONNX has an op for it; nothing for other nodes. The masks are causal, with -inf, or added.
std::optional<ir::Value> recognized_attention(const ir::Node& node, std::span<const ir::Value> operands);

}  // namespace lathe::onnx
