#pragma once

#include <string>
#include <vector>

#include "passes/lowering/attention/attention_parts.h"
#include "passes/lowering/attention/column_bounds.h"

namespace lathe {

/// The input of every lowering of an attention region.
struct AttentionProgram {
  ElementwiseProgram program;  ///< elementwise code over rows and columns
  AttentionParts parts;
  ColumnBounds bounds;
  Dim rows = 1, column_count = 1;
  /// All matmuls use tile_mma (see attention_tiles.h). Requires operands that are deep enough to fill its tiles, and
  /// either all bf16, or all f32 with enough rows and columns for splitting them into bf16 terms to pay off.
  bool tiled = false;
  std::string why_not_tiled = {};  ///< reason; empty if tiled or the CPU has no tile_mma

  std::uint64_t columns() const { return 1ULL << parts.columns_dim; }
  std::vector<int> results() const;  ///< for each output matmul, the instruction that it reads
  /// FLOPs of matmuls whose depths add up to `depths`. A causal attention needs half of the columns, a sliding window
  /// only its width.
  Dim flops(const Dim& depths) const;
};

/// Reports tile_mma as a missed path if the CPU supports it and this attention does not use it.
std::vector<MissedPath> missed_tiles(const AttentionProgram& attention);

/// Builds the program of a kernel with the `wanted` output matmuls. `program` is that of the region's rows part. If
/// no output matmul sums over rows, softmax divisions move from the weights to the sums (see softmax_divisor.h).
AttentionProgram attention_program(const LoweringContext& lowering, const Region& region, ElementwiseProgram program,
                                   OutputProducts wanted = OutputProducts::all);
/// Same, with the elementwise program of the graph as it is.
AttentionProgram attention_program(const LoweringContext& lowering, const Region& region,
                                   OutputProducts wanted = OutputProducts::all);

}  // namespace lathe
