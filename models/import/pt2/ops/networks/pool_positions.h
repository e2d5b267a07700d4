#pragma once

#include "frontend/ops/spatial/pooling.h"
#include "models/import/pt2/ops/aten_functions.h"

namespace lathe::pt2 {

/// Returns the position of the largest element of each window of x [B, C, n..], as its row-major number in the
/// spatial dims, i64 [B, C, windows..]; of equal ones that of the first. `sizes` are the spatial sizes of the tensor
/// that the numbers are for: x may have more elements at the end of its dims.
Tensor max_positions(const OpCall& call, const Tensor& x, const PoolOptions& options, const Shape& sizes);

}  // namespace lathe::pt2
