#pragma once

#include <string>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_operands.h"
#include "passes/gpu/gpu_context.h"

namespace lathe::gpu {

/// Register budget per thread in wgmma attentions; determined with ptxas.
struct AttentionRegisters {
  int others = 72;                  ///< registers of a multiplying thread other than sums, scores and saved values
  int others_of_rows = 32;          ///< same in the kernel of the rows, also other than weights
  int others_of_whole_tiles = 40;   ///< same in the kernel of all gradients, if all tiles are whole
  int of_load = 12;                 ///< for each load that varies along the columns
  int of_masked_load = 8;           ///< for each such load that is masked, in the kernel of all gradients
  int of_random = 64;               ///< for random numbers, per 64 columns of a tile
  int most_sums = 128;              ///< maximum for the accumulators of all matmuls that reduce rows or columns
  int sums_beside_whole_tile = 64;  ///< maximum accumulators that leave room for the scores of a whole tile
  int most_depth = 256;             ///< maximum depth of the scores and of the row results
  int of_three_blocks = 64;         ///< maximum accumulators and scores for three blocks per multiprocessor
  int of_two_blocks = 96;           ///< same for two blocks
  int finishing = 32;               ///< registers of a thread that adds sums to memory
  int least_finishing = 24;         ///< same, if the others need more
};
inline constexpr AttentionRegisters attention_registers;

/// Attention by the warpgroups of sm_90a, after Shah et al. 2024 ("FlashAttention-3: Fast and Accurate Attention with
/// Asynchrony and Low-precision"). A block has 64 rows for each of its one or two warpgroups. Their queries stay in
/// shared memory; one thread starts TMA copies of boxes, which bring tiles of keys and values there. A warpgroup
/// multiplies its queries by a tile's keys and computes weights from the sums in its registers (see WgmmaSoftmax).
/// The weights are the left operand of the matmul with the values. A warpgroup starts the matmul for a tile's scores,
/// then the matmul of the previous tile's weights and values, and computes this tile's weights while the second
/// matmul runs (section 3.2 of the paper).
///
/// While one warpgroup computes weights, others multiply. Blocks have one of two shapes. Several blocks of one
/// warpgroup each run on a multiprocessor, and their starts and ends overlap. Or a block has two or three warpgroups,
/// which start their matmuls in turns (section 3.1): the tensor cores then always have those of one while another
/// one computes weights. Larger tiles of columns also divide the work per tile by more columns.
struct WgmmaBlocks {
  int warpgroups = 2;
  int at_once = 1;    ///< blocks per multiprocessor
  int finishers = 0;  ///< warpgroups that add sums to memory (see OrderedSums)
  int finishing = 0;  ///< registers of their threads

  int positions() const { return warpgroups * kernel::wgmma_rows; }
  int consumers() const { return warpgroups * kernel::warpgroup_threads; }
  /// Includes the threads that start copies: a warpgroup, so that its registers go to the two others (see
  /// PipelineText), or a warp.
  int threads() const {
    return consumers() + (warpgroups > 1 ? kernel::warpgroup_threads : kernel::warp_threads) +
           finishers * kernel::warpgroup_threads;
  }
  std::int64_t shared_bytes(const GpuInfo& gpu) const;  ///< limit per block
  int registers(const GpuInfo& gpu) const;              ///< limit per thread that multiplies

  /// Returns the blocks for a thread with this many sums and scores.
  static WgmmaBlocks of(int sums_and_scores);
};

/// How such a block divides its memory and registers; sizes are whole tiles.
struct WgmmaAttentionTile {
  int depth, values;  ///< of scores, of the result
  int columns;        ///< of a tile
  int stages;
  WgmmaBlocks blocks = {};

  bool in_turns() const { return blocks.warpgroups > 1; }
  std::int64_t keys() const { return std::int64_t{columns} * whole_tiles(depth); }  ///< per stage
  std::int64_t value_elements() const { return std::int64_t{columns} * whole_tiles(values); }
};

/// The tile of a kernel, or the reason why warpgroups cannot be used.
template <class Tile>
struct WgmmaPlan {
  std::optional<Tile> tile;
  std::string why_not;

  /// Returns the tile with as many stages as `stages(its blocks)` has room for; with larger blocks if there is no
  /// room.
  template <class Stages>
  static WgmmaPlan with_room(Tile tile, const Stages& stages) {
    tile.stages = stages(tile.blocks);
    if (tile.stages == 0) {
      tile.blocks = {};
      tile.stages = stages(tile.blocks);
    }
    if (tile.stages == 0) return {std::nullopt, "its tiles are too large for shared memory"};
    return {tile, ""};
  }
};
WgmmaPlan<WgmmaAttentionTile> plan_wgmma_attention(const AttentionPlan& plan);
/// Returns how many stages of this many elements fit into a block's shared memory in addition to stationary data:
/// within the limits of the GPU, or 0.
int stages_beside(const GpuContext& lowering, const WgmmaBlocks& blocks, std::int64_t stationary,
                  std::int64_t of_stage);

/// Returns the kernel of the rows: attention_by_wgmma, or attention_by_wgmma_in_turns.
KernelContext::Built lower_wgmma_attention(const AttentionPlan& plan, const WgmmaAttentionTile& tile);

}  // namespace lathe::gpu
