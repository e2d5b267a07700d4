#pragma once

#include <functional>
#include <optional>

#include "passes/lowering/attention_parts.h"
#include "passes/lowering/strip_loops.h"
#include "passes/schedule/gemm_pack.h"

/// Products of an attention in f32 by tile_mma: both operands as slices of bf16 (docs/kernel-ir.md), in blocks of 32
/// columns and 32 rows. A strip's scores stay f32; what products read of them is cut into slices on the way, which
/// takes no transposition: slot[column][row] lies as the right operand of a sum over columns, and its rows, which
/// are neighbours, as the left one of a sum over rows. Sums over columns therefore come out as [depth][row] and are
/// turned at the end of a strip.
namespace lathe {

/// Rows, columns and k of a block.
inline constexpr int sliced_block = 2 * kernel::tile_side;
/// Elements that the slices of a matrix take, whose sides are filled up to whole blocks.
Dim sliced_elements(const Dim& rows, const Dim& depth);

/// The scores of a strip: see AttentionScore.
class SlicedScore {
 public:
  SlicedScore(KernelContext& context, const AttentionParts::Score& part, OperandLoader& rows, OperandLoader& columns);

  /// Of bf16: the slices of a strip's rows, and of all columns.
  void set_scratch(kernel::Buffer rows, kernel::Buffer columns) { row_slices_ = rows, column_slices_ = columns; }
  void stage_columns(kernel::Value outer, kernel::Value columns);
  void pack_rows(const StripPlace& place, int vectors, kernel::Value rows);
  void multiply(const ScratchMatrix& slot, const StripPlace& place, int vectors, const kernel::Builder::Body& ahead);

 private:
  schedule::SliverSource sliver(kernel::Value outer, kernel::Value row, kernel::Value rows, const OperandLoader& from,
                                const schedule::LoadOperand& load) const;

  kernel::Builder& b_;
  const AttentionParts::Score& part_;
  OperandLoader &rows_, &columns_;
  int depth_;  ///< in whole blocks
  kernel::Buffer row_slices_, column_slices_;
};

/// The sums at the end: see AttentionEnd.
class SlicedEnd {
 public:
  SlicedEnd(KernelContext& context, const AttentionParts::End& part, OperandLoader& other, int strip_rows);

  struct Scratch {
    ScratchMatrix sums;                        ///< [row or column][depth in whole blocks]
    kernel::Buffer other, values;              ///< slices, of bf16: of the other operand, of values of a strip
    std::optional<ScratchMatrix> turned = {};  ///< sums over columns: [depth][row of a strip]
    kernel::Value columns = {};                ///< with turned: how many, in whole blocks
  };
  void set_scratch(const Scratch& scratch) { scratch_ = scratch; }
  static constexpr int column_block = 128;  ///< that sums over columns cut into slices at once
  static int whole_depth(const AttentionParts::End& part);

  void stage_columns(kernel::Value outer, kernel::Value columns);
  void sum_over_columns(const ScratchMatrix& slot, const StripPlace& place, kernel::Value count, kernel::Value at,
                        bool begun);
  void sum_over_rows(const ScratchMatrix& slot, const StripPlace& place, kernel::Value count);

 private:
  using Value = kernel::Value;
  /// A vector of rows at a column of a slot.
  using Vector = std::function<Value(Value column, int vector)>;
  Vector vectors(const ScratchMatrix& slot, const StripPlace& place, Value count, bool whole, bool masks_rows) const;
  void put(Value place, Value first, Value second);
  void columns_to_right(const ScratchMatrix& slot, const StripPlace& place, int half, Value lo, Value hi);
  void rows_to_left(const ScratchMatrix& slot, const StripPlace& place, int half, Value column, Value count);
  void turn(Value count, Value at, bool begun);
  void each_depth(const std::function<void(Value depth)>& body);

  kernel::Builder& b_;
  const AttentionParts::End& part_;
  OperandLoader& other_;
  int strip_rows_, depth_;
  Scratch scratch_;
};

}  // namespace lathe
