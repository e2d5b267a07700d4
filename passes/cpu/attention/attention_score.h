#pragma once

#include <optional>
#include <utility>

#include "passes/cpu/attention/attention_tiles.h"
#include "passes/cpu/attention/blocks/row_block_loops.h"
#include "passes/cpu/cpu_context.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

/// Emits the code of a matmul that computes scores, inside the attention kernel: slot[column][row] = sum over the
/// depth.
class AttentionScore {
 public:
  /// `tile`: its rows are columns of scores, its vectors are vectors of rows of scores.
  AttentionScore(KernelContext& context, const CpuContext& lowering, const AttentionParts::Score& part,
                 const RegisterTile& tile, bool tiled);

  const AttentionParts::Score& part() const { return part_; }
  OperandLoader& rows() { return rows_; }
  OperandLoader& columns() { return columns_; }
  /// The dtype in which operands are multiplied.
  DType dtype() const { return part_.pairs ? bf16 : tile_.compute; }
  /// `packed_rows`: the elements of one row block, of dtype(). `staged_columns`: [column][depth], set if the columns
  /// cannot be read in place.
  void set_scratch(ScratchMatrix packed_rows, std::optional<ScratchMatrix> staged_columns);
  /// Returns the tile_mma implementation, or null if this matmul does not use it.
  TiledScore* tiled() { return tiled_ ? &*tiled_ : nullptr; }
  /// Stages all columns, unless they are read in place.
  void stage_columns(kernel::Value outer, kernel::Value columns);
  /// Packs the first `vectors` vectors of a row block's rows; `rows` is the total number of rows.
  void pack_rows(const RowBlockPosition& row_block, int vectors, kernel::Value rows);
  /// Computes the scores of the first `vectors` vectors, each for the columns that it needs. `rows` and `columns` are
  /// the total numbers. Calls `prefetch` with the first column of every tile.
  void multiply(const ScratchMatrix& slot, const RowBlockPosition& row_block, int vectors, kernel::Value rows,
                kernel::Value columns, const kernel::Builder::Body& prefetch);

 private:
  using Value = kernel::Value;
  void tiles(const ScratchMatrix& slot, const RowBlockPosition& row_block, std::pair<Value, Value> range,
             std::pair<int, int> vectors, int packed, Value columns, const kernel::Builder::Body& prefetch);
  int bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }
  /// Elements of the depth that are multiplied per step.
  int step() const { return part_.pairs ? 2 : 1; }

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
