#pragma once

#include <string>

#include "ir/kernel/machine/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_operands.h"

namespace lathe::gpu {

/// Attention by the warpgroups of sm_90a, after Shah et al. 2024 ("FlashAttention-3: Fast and Accurate Attention
/// with Asynchrony and Low-precision"): a block has 64 rows for each of its one or two warpgroups. Their queries lie
/// in shared memory; tiles of keys and values come there as boxes of TMA, started by one thread. A warpgroup
/// multiplies its queries with a tile's keys, makes weights of the sums where they lie in its registers (see
/// WgmmaSoftmax), and these are the left operand of the product with the values, which is under way while the next
/// tile's scores are made. While one warpgroup makes weights others multiply: those of the block, or where registers
/// and shared memory suffice of further blocks of one warpgroup each on the same multiprocessor, whose beginnings and
/// ends then hide behind each other.
struct WgmmaBlocks {
  int warpgroups = 2;
  int at_once = 1;  ///< on a multiprocessor

  int positions() const { return warpgroups * kernel::wgmma_rows; }
  int consumers() const { return warpgroups * kernel::warpgroup_threads; }
  /// With those that start copies: one of a warpgroup, so that its registers go to the two others (see
  /// PipelineText), or of a warp.
  int threads() const { return consumers() + (warpgroups > 1 ? kernel::warpgroup_threads : kernel::warp_threads); }
  std::int64_t shared_bytes(const GpuInfo& gpu) const;  ///< that each may have
  int registers(const GpuInfo& gpu) const;              ///< that a thread which multiplies may have

  /// As a thread has so many sums and scores.
  static WgmmaBlocks of(const GpuInfo& gpu, int sums_and_scores);
};

/// How such a block shares its memory and registers; sizes are whole tiles.
struct WgmmaAttentionTile {
  int depth, values;  ///< of scores, of the result
  int columns;        ///< of a tile
  int stages;
  WgmmaBlocks blocks = {};

  std::int64_t keys() const { return std::int64_t{columns} * whole_tiles(depth); }  ///< of a stage
  std::int64_t value_elements() const { return std::int64_t{columns} * whole_tiles(values); }
};

/// The tile of a kernel, or why it is not for warpgroups.
template <class Tile>
struct WgmmaPlan {
  std::optional<Tile> tile;
  std::string why_not;

  /// The tile with as many stages as `stages(its blocks)` finds room for, in larger blocks where there is none.
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
/// How many stages of so many elements a block's shared memory has room for beside what is stationary there: 2 to 4,
/// or 0.
int stages_beside(const GpuInfo& gpu, const WgmmaBlocks& blocks, std::int64_t stationary, std::int64_t of_stage);

/// The kernel of the rows.
KernelContext::Built lower_wgmma_attention(const AttentionPlan& plan, const WgmmaAttentionTile& tile);

}  // namespace lathe::gpu
