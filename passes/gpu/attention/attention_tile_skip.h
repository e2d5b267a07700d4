#pragma once

#include "passes/gpu/attention/attention_plan.h"

namespace lathe::gpu {

/// The columns that a row block processes first: if its operands are bounded, only those that may contribute. If its
/// rows then fail the tile-skip check (rows_allow_skip), it processes all columns.
struct SkippableColumns {
  kernel::Value bounded, lo, hi;
  kernel::Value largest_score;  ///< bounds every score of the row block
};

/// Returns them for `count` rows from `row` on, in tiles of `tile_columns` columns. Reads the results of the maxima
/// kernel. With `lane`, the threads of a warp share the reads, and all of them must call it.
SkippableColumns skippable_columns(KernelContext& context, const AttentionPlan& plan, kernel::Value outer,
                                   kernel::Value row, int count, int tile_columns, kernel::Value lane = {});

/// Runs body(lo, hi) for these columns; it returns whether the rows pass the check. If they do not, runs it again for
/// all columns. Returns whether columns were skipped in the end.
kernel::Value go_through(kernel::Builder& b, const SkippableColumns& columns, kernel::Value column_count,
                         const std::function<kernel::Value(kernel::Value lo, kernel::Value hi)>& body);

}  // namespace lathe::gpu
