#pragma once

#include "passes/cpu/attention/attention_output.h"
#include "passes/cpu/attention/attention_score.h"

namespace lathe::cpu {

/// Makes the matrices that each thread of an attention kernel has.
class AttentionScratch {
 public:
  struct Sizes {
    DType compute;
    int lanes, block_rows;
    int tile_rows;  ///< positions that sums and scores may hang over
    Dim columns;    ///< of the attention
    Dim rows;       ///< that have sums over columns at once
  };
  AttentionScratch(KernelContext& context, const LoweringContext& lowering, Sizes sizes)
      : context_(context), lowering_(lowering), sizes_(std::move(sizes)) {}

  /// For sums of split bf16, and what finishes them (or null): to set before anything is given.
  SplitBf16Sums::Scratch split_sums();
  void set_exact(SplitBf16Sums* exact) { exact_ = exact; }
  /// A number for each column of a row block's rows.
  ScratchMatrix slot(DType dtype);
  void give_to(AttentionScore& score);
  void give_to(AttentionOutput& output);

  // Of an attention of few rows.
  /// A number for each row of each column.
  ScratchMatrix row_slot(DType dtype, int rows);
  /// The rows that make scores: [row][depth].
  ScratchMatrix few_rows(const AttentionParts::Score& score, int rows);
  ScratchMatrix sums(const AttentionParts::OutputProduct& part);
  ScratchMatrix divisors(int rows);
  /// A buffer as rows that have so many elements, and as wide as they are then: whole vectors.
  ScratchMatrix matrix_in(kernel::Buffer buffer, const Dim& width);
  Dim width_of(const Dim& width) const { return rounded(width); }

 private:
  void give_to(TiledScore& score, const AttentionParts::Score& part);
  void give_to(TiledOutput& tiled, AttentionOutput& output);
  kernel::Buffer buffer(const Dim& elements, DType dtype, const char* name);
  kernel::Buffer tiles(const Dim& rows, const Dim& depth, DType dtype, const char* name);
  ScratchMatrix matrix(const Dim& rows, const Dim& width, DType dtype, const char* name);
  Dim rounded(const Dim& width) const;

  KernelContext& context_;
  const LoweringContext& lowering_;
  Sizes sizes_;
  SplitBf16Sums* exact_ = nullptr;
};

}  // namespace lathe::cpu
