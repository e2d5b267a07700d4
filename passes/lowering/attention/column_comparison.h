#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// An integer that depends on row and column alone: row * its index + column * its index + offset.
struct RowColumnForm {
  std::int64_t row = 0, column = 0;
  Dim offset = 0;
};

/// A comparison of integers that row and column decide. It holds where all forms are >= 0; negated, where one is not.
struct RowColumnComparison {
  std::vector<RowColumnForm> forms;
  bool negated = false;
};

/// What instruction `i`, a lt or le, asks of row and column: of their indices, or of the absolute value of a form of
/// them, as |row - column| < w, the window of a local attention. Nothing where it asks anything else.
std::optional<RowColumnComparison> row_column_comparison(const ElementwiseProgram& program, int i, int row_dim,
                                                         int column_dim);

}  // namespace lathe
