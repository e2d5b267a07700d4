#pragma once

#include <string>

#include "ir/kernel/machine/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_operands.h"

namespace lathe::gpu {

/// Attention by the warpgroups of sm_90a, after Shah et al. 2024 ("FlashAttention-3: Fast and Accurate Attention
/// with Asynchrony and Low-precision"): a block has 128 rows, 64 for each of two warpgroups. Their queries lie in
/// shared memory; tiles of keys and values come there as boxes of TMA, started by one thread. A warpgroup multiplies
/// its queries with a tile's keys, makes weights of the sums where they lie in its registers (see WgmmaSoftmax), and
/// these are the left operand of the product with the values, which is under way while the next tile's scores are
/// made. While one warpgroup makes weights the other one multiplies.
/// The thread that starts copies is one of a warpgroup, so that their registers go to the other two (see
/// PipelineText).
///
/// How such a block shares its memory and registers; sizes are whole tiles.
struct WgmmaAttentionTile {
  static constexpr int warpgroups = 2, rows = warpgroups * kernel::wgmma_rows,
                       consumers = warpgroups * kernel::warpgroup_threads,
                       threads = consumers + kernel::warpgroup_threads;
  int depth, values;  ///< of scores, of the result
  int columns;        ///< of a tile
  int stages;

  std::int64_t queries() const { return StationaryOperand::elements(rows, depth); }
  std::int64_t keys() const { return std::int64_t{columns} * whole_tiles(depth); }  ///< of a stage
  std::int64_t value_elements() const { return std::int64_t{columns} * whole_tiles(values); }
};

/// The tile of a kernel, or why it is not for warpgroups.
template <class Tile>
struct WgmmaPlan {
  std::optional<Tile> tile;
  std::string why_not;
};
WgmmaPlan<WgmmaAttentionTile> plan_wgmma_attention(const AttentionPlan& plan);
/// How many stages of so many elements shared memory has room for beside what is stationary there: 2 to 4, or 0.
int stages_beside(const GpuInfo& gpu, std::int64_t stationary, std::int64_t of_stage);

/// The kernel of the rows.
KernelContext::Built lower_wgmma_attention(const AttentionPlan& plan, const WgmmaAttentionTile& tile);

}  // namespace lathe::gpu
