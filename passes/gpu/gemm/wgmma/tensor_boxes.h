#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/attention/attention_operand.h"
#include "passes/lowering/operands/product_operands.h"

namespace lathe::gpu {

/// An operand of a matmul by warpgroups: rows of elements that are summed over. Either consecutive k or neighboring
/// rows are adjacent in memory.
struct WgmmaOperand {
  const ElementwiseProgram& program;
  const std::vector<int>&batch, &rows, &k;  ///< dims of its domain
  bool along_k;

  static WgmmaOperand of(const ProductOperand& operand);
  /// Rows are its positions; with `sums_positions`, the positions are summed over.
  static WgmmaOperand of(const AttentionOperand& operand, LaneAxis axis, bool sums_positions);
};

/// Such an operand as a tensor of which TMA copies boxes. Dims that are contiguous in memory are merged.
struct TensorBoxes {
  /// Along this axis, the index of an element is the matmul's index `of` / below, modulo the size unless it is the
  /// outermost.
  struct Axis {
    enum class Of { batch, row, k } of;
    Dim size, stride, below;
    bool outermost = true;
  };
  std::vector<Axis> axes;  ///< innermost first, with stride 1; each stride is a multiple of the previous one
  Dim offset;

  /// Returns nothing if TMA cannot copy the operand: it is computed, its rows or contracted elements do not have one
  /// constant stride, or there are too many axes.
  static std::optional<TensorBoxes> of(const GpuInfo& gpu, const WgmmaOperand& operand);
};

/// A tensor map of an operand's boxes, and their copies to stages of `rows` rows, `depth` deep. For every 64 of the
/// depth, a stage has the tiles of all rows one after the other.
class BoxCopies {
 public:
  BoxCopies(KernelContext& context, kernel::Buffer from, const TensorBoxes& boxes, bool along_k, int rows, int depth);
  /// Starts to copy the elements from (row, k) on to a stage that starts at `offset`; zeros past the ends.
  void copy(kernel::Buffer to, kernel::Value batch, kernel::Value row, kernel::Value k, kernel::Value offset) const;

 private:
  void copy_box(kernel::Buffer to, kernel::Value batch, kernel::Value row, kernel::Value k,
                kernel::Value offset) const;

  KernelContext& context_;
  TensorBoxes boxes_;
  int rows_, depth_;
  int step_;  ///< rows of a box: all if rows go along k, otherwise those of a tile
  int map_;
};

}  // namespace lathe::gpu
