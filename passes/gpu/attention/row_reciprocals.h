#pragma once

#include "ir/tensor/graph.h"
#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::gpu {

/// Weights that are made again in a backward pass are exponentials divided by a sum that the forward pass has left in
/// memory, a division for every score. Where it is the sum of exp(a - max of a), which lies between 1 and the number
/// of columns or is NaN, 1 is divided by it, once a row, and the weights are products with that: of the same meaning
/// at 0, infinities and NaN, and within one and a half units in the last place instead of half of one. (The logarithm
/// of the sum, added to the largest score, would save the product as well, but not keep a row that is wholly masked
/// with -1e9: the sum vanishes beside it.)
///
///   %3 = load sum[row]          %3 = load sum[row]
///   %4 = div %2, %3       ->    %4 = div 1, %3
///                               %5 = mul %2, %4
///
/// Of f32 alone. `program`: of an attention, the last dim of its domain being the columns.
ElementwiseProgram with_row_reciprocals(const ir::Graph& graph, const ElementwiseProgram& program);

}  // namespace lathe::gpu
