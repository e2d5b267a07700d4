#pragma once

#include "passes/gpu/attention_block.h"

namespace lathe::gpu {

/// Tiles of scores in a kernel that finds the reductions of their rows in memory, where the kernel of strips of rows
/// has left them.
class KnownRows {
 public:
  /// `values`: what is asked for at the points of a tile, and added to the block's products.
  KnownRows(const AttentionPlan& plan, AttentionBlock& block, std::vector<int> values);

  /// The buffers of the plan that it reads.
  std::vector<std::pair<int, DType>> reads() const;
  /// body(points) with the values of the tile, when these have been added; not where all its rows leave out all its
  /// columns. `rows_follow`: the next tile is that of the rows below.
  using Body = std::function<void(AttentionBlock::Scopes& points)>;
  void tile(const AttentionPlace& here, bool rows_follow, const AttentionThread& thread, const Body& body = {});

 private:
  kernel::Value left_out(const AttentionPlace& tile);

  const AttentionPlan& plan_;
  AttentionBlock& block_;
  kernel::Builder& b_;
  std::vector<int> values_, scores_, fixed_;  ///< fixed: what values need of each row besides its reductions
};

}  // namespace lathe::gpu
