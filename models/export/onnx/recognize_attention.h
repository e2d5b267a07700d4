#pragma once

#include <optional>
#include <span>

#include "ir/tensor/builder.h"

namespace lathe::onnx {

/// Whether ONNX's Attention computes the attention of q [B, h, S, d], k and v [B, h or 1, T, d], with a mask for all
/// queries and keys or for some of them. A causal mask needs as many queries as keys.
bool is_onnx_attention(std::span<const ir::Value> operands, bool is_causal);

/// Returns the op `attention` for the last product of an attention that is written in steps,
///   matmul(softmax(masked(matmul(q, k^T) * scale)), v),
/// if ONNX has an op for it; nothing for other nodes. Masks fill with -inf or are added.
std::optional<ir::Value> recognized_attention(const ir::Node& node, std::span<const ir::Value> operands);

}  // namespace lathe::onnx
