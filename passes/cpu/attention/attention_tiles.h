#pragma once

#include <functional>
#include <optional>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/attention/blocks/row_block_loops.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"
#include "passes/cpu/gemm/split_bf16_sums.h"
#include "passes/lowering/attention/attention_parts.h"

/// Matmuls of an attention by tile_mma, in blocks of 32 columns and 32 rows. Operands are bf16, or f32 as bf16 terms
/// (docs/kernel-ir.md). The scores of a row block need no transposition: slot[column][row] is the left operand of a
/// sum over rows. With neighboring columns interleaved it is the right operand of a sum over columns. f32 scores are
/// split into terms while they are packed. Sums over columns are therefore computed as [depth][row] and transposed at
/// the end of a row block. Sums of split bf16 are scaled back and repaired (passes/cpu/gemm/split_bf16_sums.h) per
/// row block, while their operands are still available.
namespace lathe::cpu {

/// Number of rows, columns and k of a block.
inline constexpr int tile_block = 2 * kernel::tile_side;
/// Returns how a matmul multiplies operands of this dtype, bf16 or f32.
GemmTile tile_of(DType dtype);
/// Returns the number of bf16 elements of a packed matrix, whose sides are rounded up to whole blocks.
Dim tiled_elements(const Dim& rows, const Dim& depth, DType dtype);

/// Computes the scores of a row block; see AttentionScore.
class TiledScore {
 public:
  TiledScore(KernelContext& context, const AttentionParts::Score& part, OperandLoader& rows, OperandLoader& columns);

  /// The type of the operands, and whether they are split into bf16 terms.
  DType dtype() const { return part_.rows.dtype(); }
  bool split_bf16() const { return tile_.split_bf16(); }
  /// Sets the bf16 buffers: a row block's rows as right operands and all columns as left operands. `exact` is for
  /// split bf16.
  void set_scratch(kernel::Buffer rows, kernel::Buffer columns, SplitBf16Sums* exact) {
    packed_rows_ = rows, packed_columns_ = columns, exact_ = exact;
  }
  void stage_columns(kernel::Value outer, kernel::Value columns);
  void pack_rows(const RowBlockPosition& row_block, int vectors, kernel::Value rows);
  /// `rows`, `columns`: the total numbers.
  void multiply(const ScratchMatrix& slot, const RowBlockPosition& row_block, int vectors, kernel::Value rows,
                kernel::Value columns, const kernel::Builder::Body& prefetch);

 private:
  MicroPanelSource micro_panel(kernel::Value outer, kernel::Value row, kernel::Value rows, const OperandLoader& from,
                               const LoadOperand& load) const;

  kernel::Builder& b_;
  const AttentionParts::Score& part_;
  GemmTile tile_;
  OperandLoader &rows_, &columns_;
  int depth_;  ///< rounded up to whole blocks
  kernel::Buffer packed_rows_, packed_columns_;
  SplitBf16Sums* exact_ = nullptr;
};

/// Computes the sums of an output matmul; see AttentionOutput.
class TiledOutput {
 public:
  /// `column_block`: columns that sums over columns pack at a time.
  TiledOutput(KernelContext& context, const AttentionParts::OutputProduct& part, OperandLoader& other, int block_rows,
              int column_block);

  struct Scratch {
    ScratchMatrix sums;                            ///< [row or column][depth rounded up to whole blocks]
    kernel::Buffer other;                          ///< of bf16: the other operand
    std::optional<kernel::Buffer> values = {};     ///< bf16 values of a row block, unless read in place
    std::optional<ScratchMatrix> transposed = {};  ///< sums over columns: [depth][row of a row block]
    SplitBf16Sums* exact = nullptr;                ///< for split bf16
    /// For split bf16 sums over rows: one block of the sums of one row block.
    std::optional<kernel::Buffer> block = {};
    kernel::Value columns = {};  ///< with `transposed`: their number, rounded up to whole blocks
  };
  void set_scratch(const Scratch& scratch) { scratch_ = scratch; }
  int column_block() const { return column_block_; }
  /// The type of the operands, and whether they are split into bf16 terms.
  DType dtype() const { return part_.other.dtype(); }
  bool split_bf16() const { return tile_.split_bf16(); }
  /// Whether values are packed first. Sums over rows read bf16 in place.
  bool packs_values() const { return tile_.split_bf16() || !part_.over_rows; }
  static int whole_depth(const AttentionParts::OutputProduct& part);

  void stage_columns(kernel::Value outer, kernel::Value columns);
  void sum_over_columns(const ScratchMatrix& slot, const RowBlockPosition& row_block, kernel::Value count,
                        kernel::Value at, bool begun);
  void sum_over_rows(const ScratchMatrix& slot, const RowBlockPosition& row_block, kernel::Value count);

 private:
  using Value = kernel::Value;
  /// Loads a vector of rows at a column of a slot.
  using Vector = std::function<Value(Value column, int vector)>;
  Vector vectors(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count, bool whole,
                 bool masks_rows) const;
  void put(Value position, Value first, Value second);
  void columns_to_right(const ScratchMatrix& slot, const RowBlockPosition& row_block, int half, Value lo, Value hi);
  RowsTarget other_columns(Value depth, Value lo) const;
  void rows_to_left(const ScratchMatrix& slot, const RowBlockPosition& row_block, int half, Value column,
                    Value count);
  void clear_unseen(const ScratchMatrix& slot, const RowBlockPosition& row_block, int half, Value column,
                    Value count);
  void rows_of_block(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value column, Value count);
  void finish_columns(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count);
  void finish_block(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value column, Value depth,
                    Value first, Value count);
  LoadOperand values(const ScratchMatrix& slot, const RowBlockPosition& row_block, bool by_column) const;
  void transpose_sums(Value count, Value at, bool begun);
  void each_depth(const std::function<void(Value depth)>& body);

  kernel::Builder& b_;
  const AttentionParts::OutputProduct& part_;
  GemmTile tile_;
  OperandLoader& other_;
  int block_rows_, column_block_, depth_;
  Scratch scratch_;
};

}  // namespace lathe::cpu
