#pragma once

#include "ir/kernel/machine/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_attention.h"

namespace lathe::gpu {

/// Products that end an attention whose rows' reductions lie in memory, by the warpgroups of sm_90a, after the same
/// paper's backward pass. Those that sum over rows (dK and dV): a block has 64 columns for each of its one or
/// two warpgroups. What makes scores of them (keys, values) is stationary in shared memory; tiles of 64 rows of the
/// other operands (queries, the result's gradient) are streamed there as boxes of TMA. A warpgroup makes scores
/// transposed, its columns by the tile's rows, and what it makes of them where they lie is the left operand of the
/// products that end the attention, which sum over the rows of the very same tile, transposed. They are under way
/// while the next scores are made. Those that sum over columns (dQ) go just so with rows and columns the other way
/// round. Each sum is of one block, in order: nothing is added by atomics.
struct WgmmaOutputTile {
  static constexpr int streamed = kernel::swizzle_side;
  int at_once;  ///< of the positions of a streamed tile, as registers allow
  int stages;
  WgmmaBlocks blocks;
};

/// What such a kernel multiplies.
struct WgmmaOutputParts {
  bool over_rows;                                    ///< then columns are stationary, else rows
  std::vector<const AttentionParts::Score*> scores;  ///< that the outputs need
  std::vector<const AttentionParts::OutputProduct*> outputs;
  std::vector<const AttentionOperand*> streamed;  ///< no two with the same elements

  std::vector<int> values() const;  ///< by output product: what it reads
  const AttentionOperand& stationary_operand(const AttentionParts::Score& score) const {
    return over_rows ? score.columns : score.rows;
  }
  const AttentionOperand& streamed_operand(const AttentionParts::Score& score) const {
    return over_rows ? score.rows : score.columns;
  }
  std::size_t streamed_number(const AttentionOperand& operand) const;
};
WgmmaOutputParts wgmma_output_parts(const AttentionPlan& plan, bool over_rows);

WgmmaPlan<WgmmaOutputTile> plan_wgmma_outputs(const AttentionPlan& plan, bool over_rows);
KernelContext::Built lower_wgmma_outputs(const AttentionPlan& plan, bool over_rows, const WgmmaOutputTile& tile);

}  // namespace lathe::gpu
