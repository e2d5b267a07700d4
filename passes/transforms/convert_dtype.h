#pragma once

#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The graph at another float dtype: arguments, constants, casts and every value of dtype `from` become `to`, and the
/// complex values made of them likewise (f32 -> f64 takes c64 to c128). Other dtypes stay. Run it before
/// `expand`, so that composites choose their inner dtypes anew. Throws UserError [convert_dtype] where `from` or
/// `to` is no float, or where the graph holds complex values and `to` is no part of a complex dtype.
///   %1 = add %x, %y : f32[n]   ->   %1 = add %x, %y : f64[n]
Graph convert_dtype(const Graph& graph, DType from, DType to);

}  // namespace lathe::ir
