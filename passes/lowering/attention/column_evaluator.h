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

/// Whether nothing there contributes to any reduction, nor to `results`, whatever the scores `anything` are. `bounds`
/// takes what must be checked while the kernel runs.
bool contributes_nothing(const ElementwiseProgram& program, const ColumnSide& side, const std::vector<int>& results,
                         const std::vector<int>& anything, ColumnBounds& bounds);

/// The comparisons of row and column that are the same at all columns there.
std::vector<std::pair<int, bool>> decided_comparisons(const ElementwiseProgram& program, const ColumnSide& side);

}  // namespace lathe
