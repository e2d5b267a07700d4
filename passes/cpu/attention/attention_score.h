#pragma once

#include <optional>
#include <utility>

#include "passes/cpu/attention/attention_tiles.h"
#include "passes/cpu/attention/row_block_loops.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

/// The code of a product that makes scores, inside one kernel: slot[column][row] = sum over the depth.
class AttentionScore {
 public:
  /// `tile`: of columns and vectors of rows.
  AttentionScore(KernelContext& context, const LoweringContext& lowering, const AttentionParts::Score& part,
                 const RegisterTile& tile, bool tiled);

  const AttentionParts::Score& part() const { return part_; }
  OperandLoader& rows() { return rows_; }
  OperandLoader& columns() { return columns_; }
  /// The type that operands are multiplied in.
  DType dtype() const { return part_.pairs ? bf16 : tile_.compute; }
  /// `packed_rows`: as many elements as a row block has, of dtype(); `staged_columns`: [column][depth], where the
  /// columns cannot be read in place.
  void set_scratch(ScratchMatrix packed_rows, std::optional<ScratchMatrix> staged_columns);
  /// Where it is made by tile_mma.
  TiledScore* tiled() { return tiled_ ? &*tiled_ : nullptr; }
  /// Stages all columns, where they are not read in place.
  void stage_columns(kernel::Value outer, kernel::Value columns);
  /// Packs the first `vectors` vectors of a row block's rows, out of `rows` in all.
  void pack_rows(const RowBlockPosition& row_block, int vectors, kernel::Value rows);
  /// The scores of these vectors, each for the columns that it looks at, out of so many `rows` and `columns` in all.
  /// `prefetch` sees the columns of every tile.
  void multiply(const ScratchMatrix& slot, const RowBlockPosition& row_block, int vectors, kernel::Value rows,
                kernel::Value columns, const kernel::Builder::Body& prefetch);

 private:
  using Value = kernel::Value;
  void tiles(const ScratchMatrix& slot, const RowBlockPosition& row_block, std::pair<Value, Value> range,
             std::pair<int, int> vectors, int packed, Value columns, const kernel::Builder::Body& prefetch);
  int bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }
  int step() const { return part_.pairs ? 2 : 1; }  ///< elements of the depth that are multiplied at once

  KernelContext& context_;
  kernel::Builder& b_;
  const AttentionParts::Score& part_;
  RegisterTile tile_;
  OperandLoader rows_, columns_;
  ScratchMatrix packed_rows_;  ///< [depth][row], or [depth / 2][row][2]
  std::optional<ScratchMatrix> staged_columns_;
  std::optional<TiledScore> tiled_;
};

}  // namespace lathe::cpu
