#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Copies a transposed value into memory in the order of its dims if many point-wise nodes and reductions read it,
/// which would otherwise load elements of different cache lines. The gradient of a depthwise convolution whose result
/// is normalized along the channels has one such reader per element of the window:
///
///   %1 = transpose %dy {dim0=1, dim1=3}   : f32[B, C, W, H] strided    %1 = transpose %dy {...} : ... strided
///   %2 = mul %1, %x0                                                   %2 = contiguous %1       : f32[B, C, W, H]
///   %3 = mul %1, %x1                                                ->  %3 = mul %2, %x0
///   ...                                                                ...
ir::Graph store_transposed(ir::Graph graph);

}  // namespace lathe
