#pragma once

#include <optional>

#include "passes/cpu/attention/attention_tiles.h"
#include "passes/cpu/attention/blocks/row_block_loops.h"
#include "passes/cpu/cpu_context.h"
#include "passes/cpu/gemm/register_tile.h"
#include "passes/lowering/attention/column_bounds.h"

namespace lathe::cpu {

/// Emits the code of one output matmul of an attention, inside the attention kernel: sums over the values of row
/// blocks.
class AttentionOutput {
 public:
  AttentionOutput(KernelContext& context, const CpuContext& lowering, const AttentionParts::OutputProduct& part,
                  const RegisterTile& tile, const ColumnBounds& bounds, bool tiled);

  const AttentionParts::OutputProduct& part() const { return part_; }
  OperandLoader& other() { return other_; }
  struct Scratch {
    ScratchMatrix sums;                          ///< [row or column][depth]
    std::optional<ScratchMatrix> staged = {};    ///< the other operand, unless it is read in place
    std::optional<ScratchMatrix> divisors = {};  ///< one per row of a row block, if the part has divisors
    std::optional<ScratchMatrix> pairs = {};     ///< see columns_in_pairs
  };
  void set_scratch(const Scratch& scratch);
  /// Returns the tile_mma implementation, or null if this output does not use it.
  TiledOutput* tiled() { return tiled_ ? &*tiled_ : nullptr; }
  /// Columns that sums over columns process at a time. If the part multiplies pairs, a block is stored as
  /// pairs[column / 2][row][2], with a few columns of slack.
  int column_block() const { return blocks_.summed_columns; }
  /// Stores the divisors of a row block's rows. Without columns they are 1, because there are no weights to divide.
  void keep_divisors(ElementwiseEmitter& emitter, RowBlockLoops::Rows& rows, kernel::Value columns);
  /// Stages all columns of the other operand, if it is read by column and not in place.
  void stage_columns(kernel::Value outer, kernel::Value columns);

  /// sums[at + row] = sum over columns of slot[column][row] * other[column], for the first `count` rows of a row
  /// block. Adds to the sums of earlier columns if `begun`.
  void sum_over_columns(const ScratchMatrix& slot, const RowBlockPosition& row_block, kernel::Value count,
                        kernel::Value at, bool begun);
  /// sums[column] += sum over the first `count` rows of a row block of slot[column][row] * other[row].
  void sum_over_rows(const ScratchMatrix& slot, const RowBlockPosition& row_block, kernel::Value count);
  /// sums[first .. last] = 0. May also clear a few positions past `last`.
  void clear(kernel::Value first, kernel::Value last);
  /// Runs the epilogue on the sums of positions first .. first + count, which are stored from `at` on.
  void epilogue(kernel::Value outer, kernel::Value first, kernel::Value count, kernel::Value at);

 private:
  using Value = kernel::Value;
  int bytes() const;
  RegisterTile tile(int rows, int vectors) const;
  TileVector depth_vectors(Value outer, Value first, Value depth0, bool masked);
  void row_tiles(Value count, int most, const std::function<void(Value row, int rows)>& body);
  void depth_tiles(const std::function<void(Value depth0, int vectors, bool masked)>& body);
  std::pair<Value, Value> columns_of_rows(const RowBlockPosition& row_block, Value row, Value lo, Value hi);
  std::pair<Value, Value> rows_of_columns(const RowBlockPosition& row_block, Value column, Value count);
  void stage(Value outer, Value first, Value count);
  void columns_in_pairs(const ScratchMatrix& slot, Value lo, Value hi, Value count);
  std::pair<Value, Value> steps(std::pair<Value, Value> range);

  KernelContext& context_;
  kernel::Builder& b_;
  const AttentionParts::OutputProduct& part_;
  const AttentionBlocks& blocks_;
  RegisterTile tile_;
  const ColumnBounds& bounds_;
  DType dtype_;  ///< of the output
  OperandLoader other_;
  ElementwiseEmitter emitter_;
  ElementwiseEmitter::Scope top_;
  ScratchMatrix sums_;
  std::optional<ScratchMatrix> staged_, divisors_, pairs_;
  std::optional<TiledOutput> tiled_;
};

}  // namespace lathe::cpu
