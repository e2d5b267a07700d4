#pragma once

#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the graph in mixed precision: each op of f32 values is computed as its record says (MixedPrecision), like
/// torch.autocast. Matmuls round their operands to `low_precision` (bf16 or f16) and return low-precision results.
/// Sums, norms, softmax and losses use f32. Other ops follow their operands: low precision if all of them are, f32 if
/// one is. A scalar among tensors is ignored, as in PyTorch, unless it is a constant that `low_precision` cannot
/// hold. The op then stays f32, so that -1e9 never becomes -inf. Arguments, outputs and updates keep their dtypes:
/// parameters are f32 master weights, rounded once per step. Values of other dtypes are unchanged.
///
/// Run it before differentiation: gradients of low-precision matmuls are low-precision matmuls, the gradient of a
/// parameter is f32, and the optimizer has no low-precision values. Throws UserError [mixed_precision] if
/// `low_precision` is neither bf16 nor f16, or if the graph updates a parameter and is therefore a training step
/// already.
///   %1 = linear %x, %w : f32[n, 4]   ->   %1 = cast %x {dtype=bf16} : bf16[n, 8]
///                                         %2 = cast %w {dtype=bf16} : bf16[4, 8]
///                                         %3 = linear %1, %2 : bf16[n, 4]
Graph mixed_precision(const Graph& graph, DType low_precision);

}  // namespace lathe::ir
