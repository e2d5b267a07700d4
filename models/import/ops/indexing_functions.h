#pragma once

#include "models/import/ops/tensor_functions.h"

/// Reads of elements at indices. Negative indices count from the end, and one out of range is an error at
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

/// Returns the row-major numbers of the elements that checked indices, of the rank of `data`, name along an axis.
Tensor element_numbers(const Tensor& indices, const Shape& data, int axis);

/// Throws [import_operand] unless operand `i`, of indices, has a rank.
void require_rank(const OpCall& call, std::size_t i, int rank);

/// Returns the elements at the indices of operand `i` along an axis. The indices have the rank of x and may have
/// smaller sizes. Throws [import_operand] for another rank.
Tensor gathered_along(const OpCall& call, const Tensor& x, std::size_t i, int axis);

/// Returns `data` with dims [0, last) as one.
Tensor with_joined_dims(const Tensor& data, int last);

}  // namespace lathe::importing
