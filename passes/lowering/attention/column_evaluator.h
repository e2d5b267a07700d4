#pragma once

#include <utility>
#include <vector>

#include "passes/lowering/attention/column_bounds.h"

namespace lathe {

/// The columns on one side of a diagonal: column > row + edge (above), or column < row + edge.
struct ColumnSide {
  int row_dim, column_dim;  ///< of the domain
  bool above;
  Dim edge;
};

/// Returns whether the columns on this side contribute nothing to any reduction or to `results`, for any values of
/// the scores in `anything`. Adds the conditions that the kernel must check to `bounds`.
bool contributes_nothing(const ElementwiseProgram& program, const ColumnSide& side, const std::vector<int>& results,
                         const std::vector<int>& anything, ColumnBounds& bounds);

/// Returns the comparisons of row and column indices that have the same result at all columns on this side.
std::vector<std::pair<int, bool>> decided_comparisons(const ElementwiseProgram& program, const ColumnSide& side);

}  // namespace lathe
