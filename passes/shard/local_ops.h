#pragma once

#include <span>

#include "ir/tensor/builder.h"
#include "passes/shard/plan/split_plan.h"

namespace lathe::shard {

/// Adds the computation of a process for a node, from its local operands. It is the op itself with local sizes, or,
/// if the op depends on positions in the whole tensor (iota, random numbers, lookups along a split dim), the op at
/// the positions that the process holds. The result has the shape `local`: that of the split by name or, for
/// arguments and elementwise ops, of a shard of it. It has the node's location. A loop runs the body of a process,
/// which gets its positions in the mesh as invariants.
///
///   gather %wte[vocab, d], %ids   ->   where(0 <= i < n, gather(%wte[vocab@model=n, d], clamped i), 0),
///                                      i = %ids - n * mesh_index
ir::Value add_local(ir::GraphBuilder& builder, const ir::Graph& graph, const SplitPlan& splits, ir::ValueId id,
                    std::span<const ir::Value> operands, const Shape& local);

/// Returns `a` in a shape with as many elements: a view if the strides allow it, otherwise a copy.
ir::Value shown_as(const ir::Value& a, const Shape& shape);
/// Returns the process's shard of dim `dim`, which has (blocks, ranks, size) elements, as (blocks, size).
ir::Value take_part(const ir::Value& whole, int dim, const Dim& blocks, const MeshAxis& axis);

}  // namespace lathe::shard
