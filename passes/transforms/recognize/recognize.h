#pragma once

#include <optional>
#include <span>

#include "ir/tensor/builder.h"

/// Files of other systems often spell out norms, activations and rotary embeddings in elementwise ops and means.
namespace lathe::ir {

/// Returns layer_norm, rms_norm, gelu, silu or rope if the node is the last op of such a formula, and nothing
/// otherwise. The op computes the same function: it differs from the node by rounding at most. Constants must be
/// those of the op, rounded to the node's dtype. bf16 and f16 are left alone, because the op rounds only its result.
std::optional<Value> recognized(const Node& node, std::span<const Value> operands);

}  // namespace lathe::ir
