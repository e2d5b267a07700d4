#pragma once

#include "ir/tensor/graph.h"

namespace lathe::shard {

/// Operations of a product of matrices, a multiply-add counting two: contract, grouped_matmul, segment_outer. 0 for
/// any other op.
double product_flops(const ir::Graph& graph, ir::ValueId id, const DimBindings& dims);
/// Those of all nodes of a graph of primitives.
double product_flops(const ir::Graph& graph, const DimBindings& dims);

}  // namespace lathe::shard
