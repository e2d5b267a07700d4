#pragma once

#include "passes/gpu/attention/block/attention_block.h"

namespace lathe::gpu {

/// The largest a of a row so far.
///
/// While it is -inf, no column contributes yet, and exponentials use a - 0, which gives zeros, instead of -inf -
/// -inf. If it is -inf at the end, everything is NaN, like exp(a - most), unless masked rows are zero.
struct RisingMaximum {
  kernel::Var most;

  /// The value to subtract from now on, and the factor of the sums so far.
  struct Raised {
    kernel::Value subtracted, factor;
  };
  /// `approximate`: the factor is a kernel::fast_exp, if the maximum is in f32.
  Raised raise(kernel::Builder& b, kernel::Value here, bool approximate = false) const;
  /// Returns the final factor of the sums: 1 or NaN.
  kernel::Value end(kernel::Builder& b, const OnlineSoftmax& softmax, kernel::Value column_count) const;
};

/// The only loop over the columns of an OnlineSoftmax. A thread has the sums of its own columns; the maximum is that
/// of the whole row.
class OnlineLoop {
 public:
  OnlineLoop(const AttentionPlan& plan, AttentionBlock& block);

  /// Processes tiles from `first` up to column `end` and binds the reductions in the rows.
  void run(AttentionBlock::Scopes& rows, const ScorePosition& first, kernel::Value end,
           const AttentionThread& thread);

 private:
  struct Row {
    RisingMaximum maximum;
    std::vector<kernel::Var> sums;
  };
  void tile(AttentionBlock::Scopes& of_rows, const ScorePosition& here, const AttentionThread& thread);
  /// Updates the maximum with a tile's columns and returns the factor of the sums so far.
  kernel::Value raise(Row& row, AttentionBlock::Scope& point, const AttentionThread& thread);
  void finish(AttentionBlock::Scopes& of_rows, const AttentionThread& thread);

  const AttentionPlan& plan_;
  const OnlineSoftmax& online_;
  AttentionBlock& block_;
  kernel::Builder& b_;
  int own_;
  std::vector<int> scores_;
  std::vector<AttentionSums*> products_;
  std::vector<Row> rows_;
};

}  // namespace lathe::gpu
