#pragma once

#include <vector>

#include "passes/cpu/gemm/gemm.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

/// Computes the last plan.remainder columns of a matmul, which would fill a small part of a vector. They are dot
/// products with lanes along k if the left operand is read along k; otherwise lanes run along its rows. Used inside
/// the tasks of the blocked strategy, with a direct left operand.
class RemainderColumns {
 public:
  /// `sizes` includes all columns.
  RemainderColumns(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                   const GemmOperand& rhs, const Epilogue& epilogue);

  /// Allocates scratch at the start of a task.
  void begin();
  /// Copies steps k0 .. k1 of the columns to scratch, if they are read along k.
  void copy(kernel::Value batch, kernel::Value k0, kernel::Value k1);
  /// Passes the results of rows m0 .. m1, at most `block` of them, to the epilogue. All of k must have been copied.
  void rows(kernel::Value batch, kernel::Value m0, kernel::Value m1);
  /// Returns the number of rows to process at a time while they are in cache: whole tiles that fill a vector of sums,
  /// or whole vectors of rows.
  static int block(const GemmPlan& plan, LaneAxis lhs);
  /// Returns the elements of scratch that a plan's tasks need for the remaining columns.
  static std::int64_t scratch(const GemmPlan& plan, LaneAxis lhs, std::int64_t k);

 private:
  /// Rows whose results are in scratch at a time, including those computed past the last one.
  static int rows_in_scratch(const GemmPlan& plan, LaneAxis lhs);
  bool dots() const { return lhs_.axis == LaneAxis::k; }
  kernel::Value element(kernel::Value batch, kernel::Value k, int column);
  void dot_products(kernel::Value batch, kernel::Value m0, kernel::Value m1);
  void vectors_of_rows(kernel::Value batch, kernel::Value m0, kernel::Value m1);
  /// Multiplies a tile over a range of k and passes the sums to the sink.
  using MultiplyBlock = std::function<void(kernel::Value k0, kernel::Value k1, const TileSink& sink)>;
  void add_blocks(const RegisterTile& tile, const MultiplyBlock& multiply, const TileSink& sink);

  kernel::Builder& b_;
  const GemmPlan& plan_;
  const GemmTile& tile_;
  const GemmSizes sizes_;
  const GemmOperand &lhs_, &rhs_;
  const Epilogue& epilogue_;
  kernel::Value first_, stride_;  ///< the first remaining column; elements of a column in scratch
  /// results: row by row; each row is stored as a whole vector, whose excess the next rows overwrite.
  kernel::Buffer columns_, results_;
};

}  // namespace lathe::cpu
