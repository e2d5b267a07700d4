#pragma once

#include <functional>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// By node: the operands of products of bf16 or f16 (both factors are) that blocks of threads are to copy from
/// memory: what is computed for one, a parameter rounded from f32 or a gradient, would be computed again by every
/// block beside it, from wider elements, and could come neither by TMA nor by cp.async. Not where the other factor
/// has no more than `few` rows, so that few blocks stand side by side, as where one token is decoded.
///
///   %1 = cast %w {dtype=bf16}                       %1: true
///   %2 = contract %x, %1 {spec="ac,bc->ab"}         for %x: bf16[n, 768]
/// Only products that are `wanted` count.
std::vector<bool> find_copied_operands(const ir::Graph& graph, std::int64_t few,
                                       const std::function<bool(ir::ValueId product)>& wanted);

}  // namespace lathe
