#pragma once

#include <string>

#include "passes/gpu/attention/wgmma/wgmma_operands.h"

namespace lathe::gpu {

/// Attention by the warp groups of sm_90a, after Shah et al. 2024 ("FlashAttention-3: Fast and Accurate Attention
/// with Asynchrony and Low-precision"): a block has 128 rows, 64 for each of two warp groups. Their queries lie in
/// shared memory; tiles of keys and values come there as boxes of TMA, started by one thread. A group multiplies its
/// queries with a tile's keys, makes weights of the sums where they lie in its registers (see GroupSoftmax), and
/// these are the left operand of the product with the values, which is under way while the next tile's scores are
/// made. While one group makes weights the other one multiplies.
/// The thread that starts copies is one of a warp group, so that their registers go to the other two (see RingText).
///
/// How such a block shares its memory and registers; sizes are whole panels.
struct GroupAttentionTile {
  static constexpr int groups = 2, rows = groups * kernel::group_rows, users = groups * kernel::group_threads,
                       threads = users + kernel::group_threads, most_depth = 256;
  int depth, values;  ///< of scores, of the result
  int columns;        ///< of a tile
  int stages;

  std::int64_t queries() const { return RestingOperand::elements(rows, depth); }
  std::int64_t keys() const { return std::int64_t{columns} * whole_panels(depth); }  ///< of a stage
  std::int64_t value_elements() const { return std::int64_t{columns} * whole_panels(values); }
};

/// The tile of a kernel, or why it is not for warp groups.
template <class Tile>
struct GroupPlan {
  std::optional<Tile> tile;
  std::string why_not;
};
GroupPlan<GroupAttentionTile> plan_group_attention(const AttentionPlan& plan);
/// How many stages of so many elements shared memory has room for beside what rests there: 2 to 4, or 0.
int stages_beside(std::int64_t resting, std::int64_t of_stage);

/// The kernel of the rows.
KernelContext::Built lower_group_attention(const AttentionPlan& plan, const GroupAttentionTile& tile);

}  // namespace lathe::gpu
