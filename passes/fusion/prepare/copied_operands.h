#pragma once

#include <functional>
#include <vector>

#include "ir/tensor/node_map.h"

namespace lathe {

/// By node: the operands of bf16 or f16 matmuls (both factors have that dtype) that thread blocks should copy from
/// memory. If an operand is computed, such as a parameter rounded from f32 or a gradient, every adjacent block would
/// recompute it from wider elements, without TMA or cp.async. Excluded are operands whose other factor has at most
/// `few` rows, as in decoding, so that few blocks are adjacent.
///
///   %1 = cast %w {dtype=bf16}                       %1: true
///   %2 = contract %x, %1 {spec="ac,bc->ab"}         for %x: bf16[n, 768]
/// Only matmuls that are `wanted` are considered.
ir::NodeMap<bool> find_copied_operands(const ir::Graph& graph, std::int64_t few,
                                       const std::function<bool(ir::ValueId product)>& wanted);

}  // namespace lathe
