#pragma once

#include "passes/gpu/group_attention.h"

namespace lathe::gpu {

/// Products that sum over rows (dK and dV) by the warp groups of sm_90a, after the same paper's backward pass: a
/// block has 128 columns, 64 for each of two warp groups. What makes scores of them (keys, values) rests in shared
/// memory; tiles of 64 rows of the rest (queries, the result's gradient) come there as boxes of TMA. A group makes
/// scores transposed, its columns by the tile's rows, and what it makes of them where they lie is the left operand of
/// the products that end the attention, which sum over the rows of the very same tile, turned. They are under way
/// while the next scores are made. Each column's sums are of one block, its rows in order: nothing is added by
/// atomics.
struct GroupColumnsTile {
  static constexpr int groups = 2, columns = groups * kernel::group_rows, users = groups * kernel::group_threads,
                       threads = users + kernel::group_threads, rows = kernel::panel_side;
  int rows_at_once;  ///< of a tile, as registers allow
  int stages;
};

/// What the kernel of the columns multiplies.
struct GroupColumnsParts {
  std::vector<const AttentionParts::Score*> scores;  ///< that the sums over rows need
  std::vector<const AttentionParts::End*> ends;
  std::vector<const AttentionOperand*> passing;  ///< no two with the same elements
  std::size_t passing_number(const AttentionOperand& operand) const;
};
GroupColumnsParts group_columns_parts(const AttentionPlan& plan);

GroupPlan<GroupColumnsTile> plan_group_columns(const AttentionPlan& plan);
KernelContext::Built lower_group_columns(const AttentionPlan& plan, const GroupColumnsTile& tile);

}  // namespace lathe::gpu
