#pragma once

#include "passes/gpu/attention/block/attention_block.h"

namespace lathe::gpu {

/// The instructions that values at the points of a tile depend on, in a kernel that reads the reductions of rows from
/// memory. Instructions in `known` are available and add no dependencies.
struct NeededOfRows {
  std::vector<bool> all;    ///< by instruction
  std::vector<int> scores;  ///< accumulators of matmuls
  std::vector<int> fixed;   ///< not varying along the columns, except reductions
};
NeededOfRows needed_of_rows(const AttentionPlan& plan, const std::vector<int>& values,
                            const std::vector<int>& known = {});
/// Returns the values that matmuls over rows read.
std::vector<int> summed_over_rows(const AttentionPlan& plan);
/// Returns the buffers of the plan that such a kernel reads, with their dtypes.
std::vector<std::pair<int, DType>> buffers_of_known_rows(const AttentionPlan& plan);
/// Binds the reductions of rows from `row` on, one per lane, unless they are bound already.
void bind_known_rows(KernelContext& context, const AttentionPlan& plan, ElementwiseEmitter::Scope& scope,
                     kernel::Value outer, kernel::Value row, int lanes, kernel::Value mask);

/// Processes tiles of scores in a kernel that reads the reductions of their rows from memory, where the kernel of row
/// blocks has stored them.
class KnownRows {
 public:
  /// `values`: computed at the points of a tile and added to the block's output matmuls.
  KnownRows(const AttentionPlan& plan, AttentionBlock& block, std::vector<int> values);

  /// Emits body(points) with the values of the tile after they have been added, unless all its rows skip all its
  /// columns. `rows_follow`: the next tile has the rows below.
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
