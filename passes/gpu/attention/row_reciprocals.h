#pragma once

#include "ir/tensor/graph.h"
#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::gpu {

/// Weights that a backward pass recomputes are exponentials divided by a sum that the forward pass has stored: one
/// division per score. If it is the sum of exp(a - max of a), it is between 1 and the number of columns, or NaN. Its
/// reciprocal is then computed once per row, and the weights are multiplied by it. The result is the same at 0,
/// infinities and NaN, and within one and a half units in the last place instead of half of one. (Adding the
/// logarithm of the sum to the largest score would save the multiplication too. It would fail for a row that is
/// masked entirely with -1e9, where the logarithm is lost in rounding.)
///
///   %3 = load sum[row]          %3 = load sum[row]
///   %4 = div %2, %3       ->    %4 = div 1, %3
///                               %5 = mul %2, %4
///
/// Applies to f32 only. `program`: of an attention; the columns are the last dim of its domain.
ElementwiseProgram with_row_reciprocals(const ir::Graph& graph, const ElementwiseProgram& program);

}  // namespace lathe::gpu
