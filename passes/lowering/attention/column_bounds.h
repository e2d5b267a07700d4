#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// Which columns of an attention provably contribute nothing to a row: those beyond the diagonal of a causal mask, or
/// outside a sliding window. A column is left out where every value that is summed along it is exactly zero, which
/// follows from the elementwise program and from what is checked while it runs.
struct ColumnBounds {
  std::optional<Dim> upper;  ///< columns > row + upper are left out
  std::optional<Dim> lower;  ///< columns < row + lower are left out

  /// A bound that the rows of a row block must keep: base + scale * magnitude + sum of sign * row value < limit,
  /// where magnitude bounds every score, and is at least 1.
  struct Check {
    double base = 0, scale = 0;
    std::vector<std::pair<int, int>> rows;  ///< instruction, sign
    double limit = 0;
  };
  std::vector<Check> checks;
  std::vector<int> finite;   ///< row values that must be less than 1e30 in magnitude
  std::vector<int> nonzero;  ///< row values that must not be zero (nor NaN)
  /// Comparisons of row and column and what they are at all columns <= row + upper.
  std::vector<std::pair<int, bool>> inside;
  std::vector<int> anything;  ///< scores that need not be looked at: at such columns nothing depends on them
  bool any() const { return upper || lower; }
};

/// What is checked besides: every element of every operand, and every score, is less than 1e15 in magnitude, but for
/// those in `anything` and what only they are made of.
inline constexpr double score_limit = 1e15, row_limit = 1e30;

/// `results`: the instructions that the products read.
ColumnBounds find_column_bounds(const ElementwiseProgram& program, int row_dim, int column_dim,
                                const std::vector<int>& results);

}  // namespace lathe
