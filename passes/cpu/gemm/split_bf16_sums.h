#pragma once

#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

/// Converts the sums that tile_mma of split bf16 computes to f32 sums (gemm_split_bf16.h), one block of 32 x 32 at a
/// time.
class SplitBf16Sums {
 public:
  static constexpr int side = 2 * kernel::tile_side;
  static constexpr int scratch_bytes = 3 * side * side * 4;  ///< exact sums, left and right operand

  /// Scratch for sums by fma: [row][column], [k][row] and [k][column] of f32, side x side, 64-byte aligned.
  struct Scratch {
    kernel::Buffer exact, left, right;
  };
  SplitBf16Sums(kernel::Builder& b, const Scratch& scratch)
      : b_(b), exact_(scratch.exact), left_(scratch.left), right_(scratch.right) {}
  /// Allocates its own scratch, which lives until the end of the current block of code.
  explicit SplitBf16Sums(kernel::Builder& b);

  struct Block {
    kernel::Buffer sums;
    kernel::Value first, stride;  ///< where the block starts; distance from row to row
    kernel::Value rows, columns;  ///< the valid ones, if fewer than 32; the others are undefined
    int vectors = 2;              ///< of 16 columns: 1 if tile_mma has computed only the first one
  };
  /// Scales the sums of a block back. Sums that are not finite are recomputed by one fma per k, in ascending order,
  /// so that a result does not depend on the rest of the block. `left` and `right` are the original operands, 32 rows
  /// and columns of them, with all k of the sums; steps are single k.
  void finish_sums(const Block& block, const MicroPanelSource& left, const MicroPanelSource& right);

 private:
  using Value = kernel::Value;
  /// A vector of a row of a block.
  struct Position {
    int vector;         ///< 0, or 1 for columns 16 .. 31
    Value sums, exact;  ///< positions in the sums and in `exact`
    Value inside;       ///< mask of the valid lanes; empty: all
  };
  void each(const Block& block, const std::function<void(const Position&)>& body);
  void multiply(const MicroPanelSource& left, const MicroPanelSource& right);
  void fill(kernel::Buffer to, const MicroPanelSource& from, Value k, Value depth);

  kernel::Builder& b_;
  kernel::Buffer exact_, left_, right_;  ///< see Scratch
};

}  // namespace lathe::cpu
