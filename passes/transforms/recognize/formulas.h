#pragma once

#include <optional>
#include <span>

#include "ir/tensor/builder.h"

/// The formulas that recognized() looks for, by the op of their last node.
namespace lathe::ir {

/// c * rsqrt(mean(c^2) + eps), and that times a weight: rms_norm, unless c is x - mean(x).
std::optional<Value> recognize_rms_norm(const Node& node, std::span<const Value> operands);
/// (x - mean(x)) * rsqrt(mean((x - mean(x))^2) + eps) * weight + bias.
std::optional<Value> recognize_layer_norm(const Node& node, std::span<const Value> operands);
/// x * 0.5 * (1 + erf(x / sqrt(2))), and the form with tanh.
std::optional<Value> recognize_gelu(const Node& node, std::span<const Value> operands);
/// x * sigmoid(x).
std::optional<Value> recognize_silu(const Node& node, std::span<const Value> operands);
/// x * cos + concat(-x2, x1) * sin, where x1 and x2 are the halves of the last dim of x.
std::optional<Value> recognize_rope(const Node& node, std::span<const Value> operands);

}  // namespace lathe::ir
