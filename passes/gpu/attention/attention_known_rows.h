#pragma once

#include "passes/gpu/attention/block/attention_block.h"

namespace lathe::gpu {

/// What values at the points of a tile need in a kernel that finds the reductions of rows in memory. What `known`
/// says is there needs nothing.
struct NeededOfRows {
  std::vector<bool> all;    ///< by instruction
  std::vector<int> scores;  ///< products
  std::vector<int> fixed;   ///< besides reductions, what does not vary along the columns
};
NeededOfRows needed_of_rows(const AttentionPlan& plan, const std::vector<int>& values,
                            const std::vector<int>& known = {});
/// The values that products over rows read.
std::vector<int> summed_over_rows(const AttentionPlan& plan);
/// The buffers of the plan that such a kernel reads.
std::vector<std::pair<int, DType>> buffers_of_known_rows(const AttentionPlan& plan);
/// Binds the reductions of rows from `row` on, one a lane, that are not bound yet.
void bind_known_rows(KernelContext& context, const AttentionPlan& plan, ElementwiseEmitter::Scope& scope,
                     kernel::Value outer, kernel::Value row, int lanes, kernel::Value mask);

/// Tiles of scores in a kernel that finds the reductions of their rows in memory, where the kernel of row blocks
/// has left them.
class KnownRows {
 public:
  /// `values`: what is asked for at the points of a tile, and added to the block's products.
  KnownRows(const AttentionPlan& plan, AttentionBlock& block, std::vector<int> values);

  /// body(points) with the values of the tile, when these have been added; not where all its rows leave out all its
  /// columns. `rows_follow`: the next tile is that of the rows below.
  using Body = std::function<void(AttentionBlock::Scopes& points)>;
  void tile(const ScorePosition& here, bool rows_follow, const AttentionThread& thread, const Body& body = {});

 private:
  kernel::Value left_out(const ScorePosition& tile);

  const AttentionPlan& plan_;
  AttentionBlock& block_;
  kernel::Builder& b_;
  std::vector<int> values_;
  NeededOfRows needed_;
};

}  // namespace lathe::gpu
