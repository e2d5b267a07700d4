#pragma once

#include <vector>

#include "passes/cpu/gemm/gemm.h"

namespace lathe::cpu {

/// The last plan.remainder columns of a product, which would fill a small part of a vector: instead with lanes along
/// k as dot products where the left operand is read along k, else with lanes along its rows. Used inside the tasks of
/// the blocked strategy, whose left operand is direct.
class RemainderColumns {
 public:
  /// `sizes` has all columns.
  RemainderColumns(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                   const GemmOperand& rhs, const Epilogue& epilogue);

  /// At the start of a task.
  void begin();
  /// Copies steps k0 .. k1 of the columns to scratch, where they are read along k.
  void copy(kernel::Value batch, kernel::Value k0, kernel::Value k1);
  /// The results of rows m0 .. m1, at most `block` of them, by way of the epilogue, after all of k was copied.
  void rows(kernel::Value batch, kernel::Value m0, kernel::Value m1);
  /// Rows to hand over at a time, while they are in cache: whole tiles, and what makes a vector of sums, or whole
  /// vectors.
  static int block(const GemmPlan& plan, LaneAxis lhs);
  /// Elements of scratch that a plan's tasks need for it.
  static std::int64_t scratch(const GemmPlan& plan, LaneAxis lhs, std::int64_t k);

 private:
  /// Rows whose results are in scratch at once, with those that are computed beyond the last one.
  static int rows_in_scratch(const GemmPlan& plan, LaneAxis lhs);
  bool dots() const { return lhs_.axis == LaneAxis::k; }
  kernel::Value element(kernel::Value batch, kernel::Value k, int column);
  void dot_products(kernel::Value batch, kernel::Value m0, kernel::Value m1);
  void vectors_of_rows(kernel::Value batch, kernel::Value m0, kernel::Value m1);

  kernel::Builder& b_;
  const GemmPlan& plan_;
  const GemmTile& tile_;
  const GemmSizes sizes_;
  const GemmOperand &lhs_, &rhs_;
  const Epilogue& epilogue_;
  kernel::Value first_, stride_;      ///< the first of these columns; elements of a column in scratch
  kernel::Buffer columns_, results_;  ///< results: row by row, each row's a whole vector that the next ones overwrite
};

}  // namespace lathe::cpu
