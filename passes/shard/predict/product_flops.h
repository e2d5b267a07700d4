#pragma once

#include "ir/tensor/graph.h"

namespace lathe::shard {

/// Returns the operations of a matmul (contract, grouped_matmul, segment_outer), a multiply-add counted as two. 0 for
/// any other op.
double product_flops(const ir::Graph& graph, ir::ValueId id, const DimBindings& dims);
/// Returns the operations of all matmuls of a graph of primitives.
double product_flops(const ir::Graph& graph, const DimBindings& dims);

}  // namespace lathe::shard
