#pragma once

#include "models/import/ops/tensor_functions.h"

/// Reads and writes of elements at indices. Negative indices count from the end, and one out of range is an error at
/// run time [index_range].
namespace lathe::importing {

/// Returns operand `i`, of indices, without negative elements. Known ones are changed here, others at run time.
Tensor known_from_front(const OpCall& call, std::size_t i, const Dim& size);

/// Returns the parts of x at the indices of operand `i`, whose dims replace the axis.
Tensor gathered(const OpCall& call, const Tensor& x, std::size_t i, int axis);

/// Returns the indices, checked: sums of indices of several dims would otherwise name another element.
Tensor checked(const Tensor& indices, const Dim& size);

/// Returns the row-major numbers of elements of `shape`: the sum of index * stride, where `index(i)` broadcasts to
/// one shape for all dims.
Tensor linear_index(const Graph& graph, const Shape& shape, int first, int last, const auto& index) {
  Tensor total;
  for (int i = first; i < last; ++i) {
    const Dim stride = product(shape, i + 1, last);
    const Tensor term = stride.is(1) ? index(i) : index(i) * graph.dim_value(stride);
    total = total.is_empty() ? term : total + term;
  }
  return total;
}

/// Returns the elements at the indices of operand `i` along an axis. The indices have the rank of x and may have
/// smaller sizes. Throws [import_operand] for another rank.
Tensor gathered_along(const OpCall& call, const Tensor& x, std::size_t i, int axis);

/// Returns x with updates at the indices of operand `i` along an axis, of which the last one is kept for equal
/// indices, or with their sums added. Indices and updates have the rank of x. Throws [import_operand].
Tensor scattered_along(const OpCall& call, const Tensor& x, std::size_t i, const Tensor& updates, int axis,
                       bool adds);

/// How an element is combined with the updates of its index.
enum class ScatterKind : std::uint8_t { replace, add, multiply, largest, smallest };

/// Returns x combined with updates at the indices of operand `i` along an axis, by a product, the largest or the
/// smallest. Indices and updates have the rank of x, and at most its sizes along other axes. Each element of x is
/// compared with all indices along the axis. Throws [import_operand].
Tensor combined_along(const OpCall& call, const Tensor& x, std::size_t i, const Tensor& updates, int axis,
                      ScatterKind kind);

/// Combines rows of dim 0 with the rows of updates at their positions, in the same way.
Tensor with_combined_rows(const Tensor& data, const Tensor& positions, const Tensor& rows, ScatterKind kind);

/// Returns `data` with dims [0, last) as one.
Tensor with_joined_dims(const Tensor& data, int last);

/// Writes rows at positions along dim 0: replaces them, or adds to them.
Tensor with_rows(const Tensor& data, const Tensor& positions, const Tensor& rows, bool adds);

}  // namespace lathe::importing
