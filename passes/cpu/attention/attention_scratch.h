#pragma once

#include "passes/cpu/attention/attention_output.h"
#include "passes/cpu/attention/attention_score.h"
#include "passes/cpu/cpu_context.h"

namespace lathe::cpu {

/// Allocates the per-thread scratch matrices of an attention kernel.
class AttentionScratch {
 public:
  struct Sizes {
    DType compute;
    int lanes, block_rows;
    int tile_rows;  ///< positions by which sums and scores may extend past the last one
    Dim columns;    ///< of the attention
    Dim rows;       ///< that have sums over columns at the same time
  };
  AttentionScratch(KernelContext& context, const CpuContext& lowering, Sizes sizes)
      : context_(context), lowering_(lowering), sizes_(std::move(sizes)) {}

  /// split_sums() allocates scratch for sums of split bf16. set_exact() sets the object that finishes them, or null.
  /// Call both before give_to().
  SplitBf16Sums::Scratch split_sums();
  void set_exact(SplitBf16Sums* exact) { exact_ = exact; }
  /// Allocates one number per column for each row of a row block.
  ScratchMatrix slot(DType dtype);
  void give_to(AttentionScore& score);
  void give_to(AttentionOutput& output);

  // For decode attention.
  /// Allocates one number per row and column: [row][column].
  ScratchMatrix row_slot(DType dtype, int rows);
  /// Allocates the rows that make scores: [row][depth].
  ScratchMatrix decode_rows(const AttentionParts::Score& score, int rows);
  ScratchMatrix sums(const AttentionParts::OutputProduct& part);
  ScratchMatrix divisors(int rows);
  /// Views a buffer as a matrix whose rows have `width` elements, rounded up to whole vectors.
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
  const CpuContext& lowering_;
  Sizes sizes_;
  SplitBf16Sums* exact_ = nullptr;
};

}  // namespace lathe::cpu
