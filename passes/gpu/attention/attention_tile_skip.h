#pragma once

#include "passes/gpu/attention/attention_plan.h"

namespace lathe::gpu {

/// Which columns a row block goes through first: where its operands are bounded only those that may contribute
/// something. If its rows then fail the tile-skip check (rows_allow_skip), it goes through all of them after all.
struct SkippableColumns {
  kernel::Value bounded, lo, hi;
  kernel::Value largest_score;  ///< bounds every score of the row block
};

/// Of `count` rows from `row` on, by tiles of so many columns. What the kernel of the maxima has left is read: by the
/// threads of a warp, which all ask, where `lane` is given.
SkippableColumns skippable_columns(KernelContext& context, const AttentionPlan& plan, kernel::Value outer,
                                   kernel::Value row, int count, int tile_columns, kernel::Value lane = {});

/// body(lo, hi) for these columns, which says whether the rows pass the check, and if not once more for all of them.
/// Gives whether columns were left out in the end.
kernel::Value go_through(kernel::Builder& b, const SkippableColumns& columns, kernel::Value column_count,
                         const std::function<kernel::Value(kernel::Value lo, kernel::Value hi)>& body);

}  // namespace lathe::gpu
