#pragma once

#include <functional>

#include "passes/cpu/gemm/gemm_strategies.h"

namespace lathe::cpu {

/// One register tile: rows m .. m + rows of the packed rows that start at `first`, columns n .., the position of its
/// sums, and the position of the sums of the tile above it.
struct TilePosition {
  kernel::Value first, m, n, sums, above;
  int rows;
};

/// How the register tiles of a blocked matmul read their operands: from packed workspaces, from scratch that a task
/// packs, or in place.
class BlockedOperands {
 public:
  BlockedOperands(kernel::Builder& b, const GemmPlan& plan, const GemmOperand& lhs, const GemmOperand& rhs);

  /// Rows that are packed at a time: whole vectors of rows, so that no lane is wasted.
  int left_rows() const { return left_rows_; }
  /// mc rounded down to whole units of packed rows.
  int most_rows() const;

  /// Sets the sizes, without the remaining columns, and the number of steps of k.
  void set_sizes(const GemmSizes& sizes, kernel::Value steps);
  /// Allocates the scratch of a task.
  void allocate();
  /// Packs left_rows() rows from m on, or the columns of a task.
  void pack_left(const GemmTask& t, const GemmPass& p, kernel::Value m);
  void pack_right(const GemmTask& t, const GemmPass& p);

  /// Returns element i of a column of the left operand, or vector i of a row of the right one, at a step of k.
  using Element = std::function<kernel::Value(kernel::Value k, int i)>;
  Element left(const GemmTask& t, const GemmPass& p, const TilePosition& at);
  Element right(const GemmTask& t, const GemmPass& p, kernel::Value n, bool masked);

  /// Prefetches the left operand's next rows at a step of k.
  kernel::Builder::Body prefetch_left(const GemmTask& t, const GemmPass& p, const TilePosition& at);
  /// With prefetch_bytes: prefetches the packed right operand, which comes from memory. With prefetch_right:
  /// prefetches a tile's own columns prefetch_steps ahead or, in several passes, its row block's share of the next
  /// columns. Otherwise empty.
  kernel::Builder::Body prefetch_right(const GemmTask& t, const GemmPass& p, const TilePosition& at, bool one_pass);

 private:
  /// Returns the position of vector v of columns n .. at step k of a pass, in the packed right operand.
  kernel::Value packed_right(const GemmTask& t, const GemmPass& p, kernel::Value n, kernel::Value k, int v);

  kernel::Builder& b_;
  const GemmPlan& plan_;
  const GemmTile& tile_;
  const GemmOperand &lhs_, &rhs_;
  GemmSizes sizes_ = {};
  kernel::Value steps_;
  kernel::Buffer left_, right_;
  int unit_;  ///< elements per step of k
  int left_rows_;
};

}  // namespace lathe::cpu
