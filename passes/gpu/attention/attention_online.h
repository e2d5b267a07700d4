#pragma once

#include "passes/gpu/attention/block/attention_block.h"

namespace lathe::gpu {

/// The largest a of a row so far.
///
/// While it is -inf nothing has been seen that counts, and exponentials are taken of a - 0, which gives zeros, not of
/// -inf - -inf. Where it is -inf in the end, all is NaN, as exp(a - most) is then, unless masked rows are zero.
struct RisingMaximum {
  kernel::Var most;

  /// What is subtracted from here on, and what the sums so far are multiplied by.
  struct Raised {
    kernel::Value subtracted, factor;
  };
  Raised raise(kernel::Builder& b, kernel::Value here) const;
  /// What sums are multiplied by in the end: 1 or NaN.
  kernel::Value end(kernel::Builder& b, const OnlineSoftmax& softmax, kernel::Value column_count) const;
};

/// The one loop over the columns of an OnlineSoftmax. A thread has the sums of its own columns; the maximum is that
/// of the whole row.
class OnlineLoop {
 public:
  OnlineLoop(const AttentionPlan& plan, AttentionBlock& block);

  /// Goes from the tile `first` on below column `end`; binds the reductions in the rows.
  void run(AttentionBlock::Scopes& rows, const ScorePosition& first, kernel::Value end,
           const AttentionThread& thread);

 private:
  struct Row {
    RisingMaximum maximum;
    std::vector<kernel::Var> sums;
  };
  void tile(AttentionBlock::Scopes& of_rows, const ScorePosition& here, const AttentionThread& thread);
  /// Takes a tile's columns into the maximum; gives what the sums so far are multiplied by.
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
