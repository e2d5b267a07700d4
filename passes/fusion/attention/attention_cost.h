#pragma once

#include <optional>
#include <string>

#include "passes/fusion/attention/attention_grower.h"

namespace lathe {

/// Rows that a row block is worth. Of fewer all go together, and each number of keys and values is read once, which
/// nothing beats.
inline constexpr std::int64_t least_block_rows = 8;

/// What an attention costs on a CPU, for one score (a row and a column), in multiply-adds at full speed; with its
/// backward pass where the graph has one. `fused`: row blocks, the backward pass computing the scores again.
/// `plain`: products and softmax one by one, through memory. Estimated from sizes, fitted to measurements of
/// bench_attention.
struct AttentionCost {
  double fused = 0, plain = 0;
};

/// Of a forward group. Nothing where there is nothing to choose: a size is not known, the scores take more than four
/// times the memory of rows of such depth (so what plain code stores grows linearly with the length), the group
/// belongs to a backward pass, which follows its forward pass, or its products are made by tile_mma of split bf16,
/// which was faster in all that was measured.
std::optional<AttentionCost> attention_cost(const AttentionSubject& subject, const AttentionGroup& group,
                                            const CpuInfo& cpu);

/// Sizes of an attention; those that are not known count as large.
struct AttentionSizes {
  std::optional<std::int64_t> rows, columns, columns_of_row;  ///< the last: those that a row looks at
  std::int64_t least_depth = 0;                               ///< of the operands of its products
};
/// Why tile_mma, which the CPU has, does not make the products of operands of this type faster than fma does; ""
/// where it does: of bf16 where they fill more than half a block, of f32 where so many rows and columns share what is
/// split into terms that it pays. "its rows are 16, less than 128"
std::string why_not_by_tiles(const CpuInfo& cpu, DType dtype, const AttentionSizes& sizes);

}  // namespace lathe
