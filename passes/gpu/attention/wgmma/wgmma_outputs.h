#pragma once

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_attention.h"

namespace lathe::gpu {

/// Output matmuls of an attention whose row reductions are in memory, by the warpgroups of sm_90a, after the backward
/// pass of the same paper. Matmuls over rows (dK and dV): a block has 64 columns for each of its one or two
/// warpgroups. Operands of its scores (keys, values) are stationary in shared memory. Tiles of 64 rows of the other
/// operands (queries, the result's gradient) are streamed there by TMA as boxes. A warpgroup computes scores
/// transposed, its columns by the tile's rows. The weights, computed from them in registers, are the left operand of
/// the output matmuls, which sum over the rows of the same tile, transposed. They run while the next scores are
/// computed. Matmuls over columns (dQ) work the same way with rows and columns swapped. Each sum is computed by one
/// block, in order, without atomics.
struct WgmmaOutputTile {
  static constexpr int streamed = kernel::swizzle_side;
  /// Positions of a streamed tile that are processed at a time, as registers allow.
  int at_once;
  int stages;
  WgmmaBlocks blocks;
  int rows = streamed;    ///< positions of a streamed tile
  int ordered_lanes = 0;  ///< sums over columns per thread, if blocks add them to memory (see OrderedSums)
};

/// The operands and results of a wgmma attention kernel.
struct WgmmaOutputParts {
  bool over_rows;                                    ///< true: columns are stationary; false: rows
  std::vector<const AttentionParts::Score*> scores;  ///< that the outputs need
  std::vector<const AttentionParts::OutputProduct*> outputs;
  std::vector<const AttentionOperand*> streamed;  ///< without duplicates
  /// In a kernel that sums over rows: the matmul over columns to which the blocks add in order; null if there is
  /// none. It reads the value that output matmul `ordered_weights` reads. Its other operand is that of the columns of
  /// a score.
  const AttentionParts::OutputProduct* ordered = nullptr;
  std::size_t ordered_weights = 0, ordered_score = 0;

  std::vector<int> values() const;  ///< by output matmul: the value that it reads
  const AttentionOperand& stationary_operand(const AttentionParts::Score& score) const {
    return over_rows ? score.columns : score.rows;
  }
  const AttentionOperand& streamed_operand(const AttentionParts::Score& score) const {
    return over_rows ? score.rows : score.columns;
  }
  std::size_t streamed_number(const AttentionOperand& operand) const;
};
WgmmaOutputParts wgmma_output_parts(const AttentionPlan& plan, bool over_rows);

/// Whether all positions of the tiles of rows, and of the columns of warpgroups, exist and no comparison excludes
/// one.
bool are_whole_tiles(const AttentionPlan& plan, int rows);

/// Returns the parts of a kernel of all output matmuls, or why there is none.
struct WgmmaGradientParts {
  WgmmaOutputParts parts;
  std::string why_not;
};
WgmmaGradientParts wgmma_gradient_parts(const AttentionPlan& plan);

WgmmaPlan<WgmmaOutputTile> plan_wgmma_outputs(const AttentionPlan& plan, bool over_rows);
/// Plans one kernel for the matmuls over rows and those over columns (dK, dV and dQ): five matmuls per tile where two
/// kernels have seven.
WgmmaPlan<WgmmaOutputTile> plan_wgmma_gradients(const AttentionPlan& plan);
KernelContext::Built lower_wgmma_outputs(const AttentionPlan& plan, bool over_rows, const WgmmaOutputTile& tile);
/// Returns the kernel and one that clears the turns of its blocks before it.
std::vector<KernelContext::Built> lower_wgmma_gradients(const AttentionPlan& plan, const WgmmaOutputTile& tile);

}  // namespace lathe::gpu
