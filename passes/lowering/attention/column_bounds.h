#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// Columns of an attention that provably contribute nothing to a row: beyond the diagonal of a causal mask, or
/// outside a sliding window. A column can be skipped if every value that is summed along the columns is exactly zero
/// there. The proof uses the elementwise program and conditions that the kernel checks at run time.
struct ColumnBounds {
  std::optional<Dim> upper;  ///< columns > row + upper are skipped
  std::optional<Dim> lower;  ///< columns < row + lower are skipped

  /// A condition on the rows of a row block: base + scale * magnitude + sum of sign * row value < limit. `magnitude`
  /// is an upper bound of the absolute value of every score, and at least 1.
  struct Check {
    double base = 0, scale = 0;
    std::vector<std::pair<int, int>> rows;  ///< (instruction, sign)
    double limit = 0;
  };
  std::vector<Check> checks;
  std::vector<int> finite;   ///< row values that must be below 1e30 in absolute value
  std::vector<int> nonzero;  ///< row values that must not be zero (nor NaN)
  /// (comparison of row and column indices, its constant result at all columns <= row + upper)
  std::vector<std::pair<int, bool>> inside;
  std::vector<int> anything;  ///< scores without a bound check: nothing depends on them at skipped columns
  bool any() const { return upper || lower; }
};

/// Bounds that the kernel also checks: scores, and the elements of the output matmuls' other operands, must be below
/// `score_limit` in absolute value. Scores in `anything` are exempt.
inline constexpr double score_limit = 1e15, row_limit = 1e30;

/// Finds the columns that can be skipped. `results` are the instructions that the output matmuls read.
ColumnBounds find_column_bounds(const ElementwiseProgram& program, int row_dim, int column_dim,
                                const std::vector<int>& results);

}  // namespace lathe
