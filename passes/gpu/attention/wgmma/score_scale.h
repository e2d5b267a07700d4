#pragma once

#include <optional>

#include "passes/lowering/attention/column_bounds.h"

namespace lathe::gpu {

/// Returns c > 0 if `value` is c times `score` in tiles inside all bounds, where the comparisons of rows and columns
/// are known: scores may be scaled, cast between floats, masked, or have a mask of 0 added. Nothing is rounded in
/// between.
std::optional<double> scale_of_score(const ElementwiseProgram& program, const ColumnBounds& bounds, int score,
                                     int value);

}  // namespace lathe::gpu
