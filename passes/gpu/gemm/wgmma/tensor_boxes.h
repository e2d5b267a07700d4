#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/attention/attention_operand.h"
#include "passes/lowering/operands/product_operands.h"

namespace lathe::gpu {

/// An operand of a product by warpgroups: rows of elements that are summed over, of which those along k, or those
/// of neighbouring rows, are neighbours in memory.
struct WgmmaOperand {
  const ElementwiseProgram& program;
  const std::vector<int>&batch, &rows, &k;  ///< dims of its domain
  bool along_k;

  static WgmmaOperand of(const ProductOperand& operand);
  /// Rows are its positions, or where `sums_positions` these are what is summed over.
  static WgmmaOperand of(const AttentionOperand& operand, LaneAxis axis, bool sums_positions);
};

/// Such an operand as a tensor of which TMA copies boxes: dims that lie side by side in memory are one.
struct TensorBoxes {
  /// Of a product's index `of`: its index along this axis is of / below, modulo the size unless it is the outermost.
  struct Axis {
    enum class Of { batch, row, k } of;
    Dim size, stride, below;
    bool outermost = true;
  };
  std::vector<Axis> axes;  ///< the innermost first, whose stride is 1; each stride is a multiple of the one before
  Dim offset;

  /// Nothing where the operand is not of this kind: it is computed, its rows or what is contracted do not lie in
  /// equal steps, or there are too many axes.
  static std::optional<TensorBoxes> of(const GpuInfo& gpu, const WgmmaOperand& operand);
};

/// A map of an operand's boxes, and their copies to stages of so many rows, `depth` deep. A stage is, for every 64 of
/// the depth, the tiles of all rows one behind the other.
class BoxCopies {
 public:
  BoxCopies(KernelContext& context, kernel::Buffer from, const TensorBoxes& boxes, bool along_k, int rows, int depth);
  /// Starts to copy what lies from (row, k) on to a stage that begins at `offset`; zeros beyond the ends.
  void copy(kernel::Buffer to, kernel::Value batch, kernel::Value row, kernel::Value k, kernel::Value offset) const;

 private:
  void copy_box(kernel::Buffer to, kernel::Value batch, kernel::Value row, kernel::Value k,
                kernel::Value offset) const;

  KernelContext& context_;
  TensorBoxes boxes_;
  int rows_, depth_;
  int step_;  ///< rows of a box: of rows along k all, else a tile's
  int map_;
};

}  // namespace lathe::gpu
