#pragma once

#include <string>

#include "ir/tensor/graph.h"
#include "passes/fusion/fusion.h"
#include "passes/lowering/vector_target.h"

namespace lathe {

/// explain_attention for a CPU, and what multiplies in the kernel of each attention that is fused:
///
///     by k0_attention: tile_mma, f32 as slices of bf16
///
/// `costs`: as attention_costs has them, or none where fusion is required.
std::string explain_cpu_attention(const ir::Graph& graph, const VectorTarget& target, AttentionCosts costs);

}  // namespace lathe
