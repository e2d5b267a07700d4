#pragma once

#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The graph in mixed precision: each op of f32 values is computed where its record says (MixedPrecision),
/// as torch.autocast does. Products take their operands rounded to `low_precision` (bf16 or f16) and give
/// low-precision results; sums, norms, softmax and losses take f32; other ops follow their operands: low precision
/// where all of them are, f32 where one is. A scalar among tensors has no say, as in PyTorch, unless it is a constant
/// that `low_precision` cannot hold: then the op stays f32, so that -1e9 never becomes -inf. Arguments, outputs and
/// updates keep their dtypes: parameters are f32 master weights, rounded once a step. Values of other dtypes stay as
/// they are.
///
/// Run it before differentiation: gradients of low-precision products are low_precision products, the gradient of a
/// parameter is f32, and the optimizer never sees a low_precision value. Throws UserError [mixed_precision] where
/// `low_precision` is neither bf16 nor f16, or where the graph updates a parameter: it is a training step already.
///   %1 = linear %x, %w : f32[n, 4]   ->   %1 = cast %x {dtype=bf16} : bf16[n, 8]
///                                         %2 = cast %w {dtype=bf16} : bf16[4, 8]
///                                         %3 = linear %1, %2 : bf16[n, 4]
Graph mixed_precision(const Graph& graph, DType low_precision);

}  // namespace lathe::ir
