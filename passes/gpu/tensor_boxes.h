#pragma once

#include <optional>
#include <vector>

#include "passes/gpu/product_parts.h"

namespace lathe::gpu {

/// An operand of a product as a tensor of which TMA copies boxes: dims that lie side by side in memory are one.
struct TensorBoxes {
  /// Of a product's index `of`: its place along this axis is of / below, modulo the size unless it is the outermost.
  struct Axis {
    enum class Of { batch, row, k } of;
    Dim size, stride, below;
    bool outermost = true;
  };
  std::vector<Axis> axes;  ///< the innermost first, whose stride is 1; each stride is a multiple of the one before
  Dim offset;

  /// Nothing where the operand is not of this kind: it is computed, its rows or what is contracted do not lie in
  /// equal steps, or there are too many axes.
  static std::optional<TensorBoxes> of(const ProductOperand& operand);
};

/// A map of an operand's boxes of 64 elements along its axis by `lines` across, and the copies of such boxes.
class BoxCopies {
 public:
  BoxCopies(ProductParts& product, const ProductParts::Side& side, const TensorBoxes& boxes, int lines);
  /// Starts to copy the box from (row, k) on to panels in shared memory that begin at `place`; zeros beyond the ends.
  void copy(kernel::Value batch, kernel::Value row, kernel::Value k, kernel::Value place) const;

 private:
  ProductParts& product_;
  const ProductParts::Side& side_;
  TensorBoxes boxes_;
  int map_;
};

}  // namespace lathe::gpu
