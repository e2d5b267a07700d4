#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Casts a value to bf16 or f16 before its views where all that reads it does so behind them: then it is stored as
/// what is read, as slices of queries, keys and values of mixed precision are, and their copies need no conversion.
/// Each element is rounded once, before as after.
///
///   %1 = add %x, %b          : f32[n, 6]             %1 = add %x, %b           : f32[n, 6]
///   %2 = slice %1 {...}      : f32[n, 3] strided     %2 = cast %1 {dtype=bf16} : bf16[n, 6]
///   %3 = cast %2 {dtype=bf16}                   ->   %3 = slice %2 {...}       : bf16[n, 3] strided
///   %4 = slice %1 {...}      : f32[n, 3] strided     %4 = slice %2 {...}       : bf16[n, 3] strided
///   %5 = cast %4 {dtype=bf16}
///
/// Only computed values are, which no output or update is.
ir::Graph cast_before_views(const ir::Graph& graph);

}  // namespace lathe
