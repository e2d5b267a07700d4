#pragma once

#include "ir/kernel/machine/tile_mma.h"
#include "passes/cpu/gemm/gemm_pack.h"

namespace lathe::cpu {

/// Makes the sums of f32 of those that tile_mma of split bf16 leaves (gemm_split_bf16.h), a block of 32 x 32 at a
/// time.
class SplitBf16Sums {
 public:
  static constexpr int side = 2 * kernel::tile_side;
  static constexpr int scratch_bytes = 3 * side * side * 4;  ///< exact sums, left and right operand

  /// For what is computed by fma: [row][column], [k][row] and [k][column] of f32, side x side, 64-byte aligned.
  struct Scratch {
    kernel::Buffer exact, left, right;
  };
  SplitBf16Sums(kernel::Builder& b, const Scratch& scratch)
      : b_(b), exact_(scratch.exact), left_(scratch.left), right_(scratch.right) {}
  /// With scratch of its own, which lives until the end of this block of code.
  explicit SplitBf16Sums(kernel::Builder& b);

  struct Block {
    kernel::Buffer sums;
    kernel::Value first, stride;  ///< where the block begins; from row to row
    kernel::Value rows, columns;  ///< how many count, if fewer than 32; the others may be anything
    int vectors = 2;              ///< of 16 columns: whether tile_mma has made both
  };
  /// Scales the sums of a block back. Those that are not finite are computed anew, by one fma for each k in ascending
  /// order: what comes out is the same whatever else is in the block. `left` and `right` are the operands as they
  /// are, 32 rows and columns of them, with all k of the sums; steps are single k.
  void finish_sums(const Block& block, const MicroPanelSource& left, const MicroPanelSource& right);

 private:
  using Value = kernel::Value;
  /// A vector of a row of a block.
  struct Position {
    int vector;         ///< 0, or 1 for columns 16 .. 31
    Value sums, exact;  ///< where it lies
    Value inside;       ///< which of its lanes count; empty: all
  };
  void each(const Block& block, const std::function<void(const Position&)>& body);
  void multiply(const MicroPanelSource& left, const MicroPanelSource& right);
  void fill(kernel::Buffer to, const MicroPanelSource& from, Value k, Value depth);

  kernel::Builder& b_;
  kernel::Buffer exact_, left_, right_;  ///< Scratch
};

}  // namespace lathe::cpu
