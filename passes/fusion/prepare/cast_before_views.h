#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Casts a value to bf16 or f16 before its views, if all readers cast it after them. The value is then stored in the
/// dtype in which it is read, such as slices of queries, keys and values in mixed precision, and copies of the slices
/// need no conversion. Each element is rounded once, as before.
///
///   %1 = add %x, %b          : f32[n, 6]             %1 = add %x, %b           : f32[n, 6]
///   %2 = slice %1 {...}      : f32[n, 3] strided     %2 = cast %1 {dtype=bf16} : bf16[n, 6]
///   %3 = cast %2 {dtype=bf16}                   ->   %3 = slice %2 {...}       : bf16[n, 3] strided
///   %4 = slice %1 {...}      : f32[n, 3] strided     %4 = slice %2 {...}       : bf16[n, 3] strided
///   %5 = cast %4 {dtype=bf16}
///
/// Applies to computed values that are neither outputs nor updates.
ir::Graph cast_before_views(const ir::Graph& graph);

}  // namespace lathe
