#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// An affine integer form of the row and column indices: row * i + column * j + offset.
struct RowColumnForm {
  std::int64_t row = 0, column = 0;
  Dim offset = 0;
};

/// A comparison of integers that depends only on row and column indices. True if all forms are >= 0; if `negated`,
/// true if at least one is negative.
struct RowColumnComparison {
  std::vector<RowColumnForm> forms;
  bool negated = false;
};

/// Parses instruction `i`, an lt or le, as a comparison of row and column indices. Also accepts the absolute value of
/// a form, such as row - column < w in sliding-window attention. Returns nullopt for any other operands.
std::optional<RowColumnComparison> row_column_comparison(const ElementwiseProgram& program, int i, int row_dim,
                                                         int column_dim);

}  // namespace lathe
