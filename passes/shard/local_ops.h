#pragma once

#include <span>

#include "ir/tensor/builder.h"
#include "passes/shard/plan/split_plan.h"

namespace lathe::shard {

/// Adds what a process computes for a node, from what it holds of the operands: the op itself over local sizes, or,
/// where the op goes by positions in the whole tensor (iota, random numbers, lookups along a split dim), the op at
/// the positions that the process holds. The result has the shape `local`, that of the split by name or, of arguments
/// and element-wise ops, of a part of it. It runs at the node's location.
///
///   gather %wte[vocab, d], %ids   ->   where(0 <= i < n, gather(%wte[vocab@model=n, d], clamped i), 0),
///                                      i = %ids - n * mesh_index
ir::Value add_local(ir::GraphBuilder& builder, const ir::Graph& graph, const SplitPlan& splits, ir::ValueId id,
                    std::span<const ir::Value> operands, const Shape& local);

/// `a` in a shape with as many elements: a view where the strides allow it, else a copy.
ir::Value shown_as(const ir::Value& a, const Shape& shape);
/// The part of a whole value that a process holds under a placement.
ir::Value take_part(const ir::Value& whole, const Placement& placement, const Mesh& mesh);
/// The process's part of dim `dim`, of (blocks, ranks, size) elements, as (blocks, size).
ir::Value take_part(const ir::Value& whole, int dim, const Dim& blocks, const MeshAxis& axis);

}  // namespace lathe::shard
