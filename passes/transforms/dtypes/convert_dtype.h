#pragma once

#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the graph at another float dtype: arguments, constants, casts and every value of dtype `from` become `to`,
/// and complex values likewise (f32 -> f64 converts c64 to c128). Other dtypes are unchanged. Run it before `expand`,
/// so that composites choose their inner dtypes again. Throws UserError [convert_dtype] if `from` or `to` is not a
/// float, or if the graph has complex values and `to` is not part of a complex dtype.
///   %1 = add %x, %y : f32[n]   ->   %1 = add %x, %y : f64[n]
Graph convert_dtype(const Graph& graph, DType from, DType to);

}  // namespace lathe::ir
