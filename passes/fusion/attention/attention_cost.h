#pragma once

#include <optional>
#include <string>

#include "passes/fusion/attention/attention_grower.h"
#include "passes/fusion/attention/attention_rates.h"

namespace lathe {

/// Minimum number of rows for row blocks. Fewer rows are processed together, and each element of keys and values is
/// read once, which nothing beats.
inline constexpr std::int64_t least_block_rows = 8;

/// The cost of an attention on a CPU per score (a row and a column), in multiply-adds at full speed, with its
/// backward pass if the graph has one. `fused`: row blocks; the backward pass recomputes the scores. `plain`:
/// separate matmuls and softmax, through memory. Estimated from sizes, fitted to measurements of bench_attention.
struct AttentionCost {
  double fused = 0, plain = 0;
};

/// Returns the cost of a forward group, or nothing if there is no choice: a size is unknown, or the rows are too few
/// for row blocks. Other reasons: the scores need more than four times the memory of rows of such depth (so that the
/// memory of plain code stays linear in the length), the group belongs to a backward pass, which follows its forward
/// pass, or its matmuls use tile_mma of split bf16, which was faster in all measurements.
std::optional<AttentionCost> attention_cost(const AttentionSubject& subject, const AttentionGroup& group,
                                            const AttentionCostModel& model);

/// Sizes of an attention; unknown ones are treated as large.
struct AttentionSizes {
  std::optional<std::int64_t> rows, columns, columns_of_row;  ///< the last: those that a row uses
  std::int64_t least_depth = 0;                               ///< of the operands of its matmuls
};
/// Returns why tile_mma is not faster than fma for matmuls of this dtype, such as "its rows
/// are 16, less than 128". Returns "" if it is faster: for bf16 if they fill more than half a block, for f32 if
/// enough rows and columns share the operands that are split into terms.
std::string why_not_by_tiles(DType dtype, const AttentionSizes& sizes);

}  // namespace lathe
