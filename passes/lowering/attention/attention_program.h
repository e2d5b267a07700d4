#pragma once

#include <string>
#include <vector>

#include "passes/lowering/attention/attention_parts.h"
#include "passes/lowering/attention/column_bounds.h"

namespace lathe {

/// What every lowering of an attention region starts from.
struct AttentionProgram {
  ElementwiseProgram program;  ///< over rows and columns
  AttentionParts parts;
  ColumnBounds bounds;
  Dim rows = 1, column_count = 1;
  /// All products are made by tile_mma: see attention_tiles.h. Where operands are deep enough to fill its blocks and
  /// all of bf16, or all of f32 with so many rows and columns that it pays to split them into terms.
  bool tiled = false;
  std::string why_not_tiled = {};  ///< of a CPU that has tile_mma

  std::uint64_t columns() const { return 1ULL << parts.columns_dim; }
  std::vector<int> results() const;  ///< by output product: the instruction that it reads
  /// Of products of so much depth in all: of a causal attention half is needed, of a window as many columns as it is
  /// wide.
  Dim flops(const Dim& depths) const;
};

/// What a kernel that makes its products by fma tells: tile_mma, where a CPU has it and does not take it.
std::vector<MissedPath> missed_tiles(const AttentionProgram& attention);

/// Of a kernel that has the `wanted` output products. Divisions by a row's sum are taken out of what products sum
/// over the columns, unless some product sums over the rows. `program`: that of the rows part.
AttentionProgram attention_program(const LoweringContext& lowering, const Region& region, ElementwiseProgram program,
                                   OutputProducts wanted = OutputProducts::all);
/// The same of the program as the graph says.
AttentionProgram attention_program(const LoweringContext& lowering, const Region& region,
                                   OutputProducts wanted = OutputProducts::all);

}  // namespace lathe
