#include "models/import/ops/indexing_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace lathe::importing {

namespace {

/// For indices of the rank of `data`: the row-major numbers of the elements that they name along an axis.
Tensor element_numbers(const Tensor& indices, const Shape& data, int axis) {
  const Graph graph = indices.graph();
  const Tensor along = checked(indices.to(i64), data[axis].unnamed());
  return linear_index(graph, data, 0, data.rank(), [&](int i) {
    return i == axis ? along : along_axis(graph.arange(indices.size(i), i64), i, data.rank());
  });
}

/// Returns whether indices have the sizes of the data along all other axes.
bool covers(const Shape& indices, const Shape& data, int axis) {
  for (int i = 0; i < data.rank(); ++i)
    if (i != axis && indices[i] != data[i]) return false;
  return true;
}

void require_rank(const OpCall& call, std::size_t i, int rank) {
  if (call.operand(i).rank() != rank)
    call.fail(fmt::format("the indices have rank {}, and the data {}", call.operand(i).rank(), rank),
              "import_operand");
}

/// The value that changes no element.
Number neutral(ScatterKind kind, DType dtype) {
  if (kind == ScatterKind::multiply) return 1;
  const bool is_largest = kind == ScatterKind::largest;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return is_largest ? -infinity : infinity;
  return is_largest ? integer_limits(dtype).lowest : integer_limits(dtype).highest;
}

Tensor combined(const Tensor& a, const Tensor& b, ScatterKind kind) {
  if (kind == ScatterKind::multiply) return a * b;
  return kind == ScatterKind::largest ? maximum(a, b) : minimum(a, b);
}

/// Reduces dim `axis` of updates to one value for each of `size` positions: those whose index is the position.
/// `indices` broadcasts to the updates.
Tensor combined_updates(const Tensor& indices, const Tensor& updates, int axis, const Dim& size, ScatterKind kind) {
  const Graph graph = updates.graph();
  const Tensor positions = along_axis(graph.arange(size, i64), axis, updates.rank() + 1);
  const Tensor is_at = indices.unsqueeze(axis) == positions;
  const Tensor candidates = where(is_at, updates.unsqueeze(axis), neutral(kind, updates.dtype()));
  if (kind == ScatterKind::multiply) return candidates.prod(axis + 1);
  return kind == ScatterKind::largest ? candidates.max(axis + 1) : candidates.min(axis + 1);
}

}  // namespace

Tensor known_from_front(const OpCall& call, std::size_t i, const Dim& size) {
  const HostTensor* const numbers = call.operand(i).constant();
  if (!numbers) return from_front(call.tensor(i), size);
  const Ints indices = numbers->values<std::int64_t>();
  const bool has_negative = std::ranges::any_of(indices, [](std::int64_t at) { return at < 0; });
  if (!has_negative) return call.tensor(i);
  if (!size.value()) return from_front(call.tensor(i), size);
  HostTensor fixed(numbers->dtype(), numbers->shape());
  for (std::size_t k = 0; k < indices.size(); ++k)
    fixed.set_int(static_cast<std::int64_t>(k), indices[k] < 0 ? indices[k] + *size.value() : indices[k]);
  return literal(call.graph(), fixed);
}

Tensor gathered(const OpCall& call, const Tensor& x, std::size_t i, int axis) {
  const Value& indices = call.operand(i);
  if (indices.rank() == 0)
    if (const auto known = indices.dims(); known && known->elements[0].value())
      return x.select(axis, known->elements[0]);
  return gather(x, known_from_front(call, i, x.size(axis).unnamed()), axis);
}

Tensor checked(const Tensor& indices, const Dim& size) {
  return gather(indices.graph().arange(size, i64), from_front(indices, size));
}

Tensor gathered_along(const OpCall& call, const Tensor& x, std::size_t i, int axis) {
  require_rank(call, i, x.rank());
  if (covers(call.operand(i).shape(), x.shape(), axis))
    return take_along(x, known_from_front(call, i, x.size(axis).unnamed()), axis);
  return gather(x.reshape({x.shape().numel()}), element_numbers(call.tensor(i), x.shape(), axis));
}

Tensor scattered_along(const OpCall& call, const Tensor& x, std::size_t i, const Tensor& updates, int axis,
                       bool adds) {
  require_rank(call, i, x.rank());
  const Dim count = updates.shape().numel();
  const Tensor numbers = element_numbers(call.tensor(i), x.shape(), axis);
  return with_rows(x.reshape({x.shape().numel()}), numbers.reshape({count}), updates.reshape({count}), adds)
      .reshape(x.shape());
}

Tensor combined_along(const OpCall& call, const Tensor& x, std::size_t i, const Tensor& updates, int axis,
                      ScatterKind kind) {
  require_rank(call, i, x.rank());
  const Tensor indices = checked(call.tensor(i).to(i64), x.size(axis).unnamed());
  Tensor result = combined_updates(indices, updates, axis, x.size(axis).unnamed(), kind);
  for (int d = 0; d < x.rank(); ++d) {
    const Dim missing = x.size(d).unnamed() - result.size(d).unnamed();
    if (!missing.is(0)) result = padded(result, d, 0, missing, neutral(kind, x.dtype()));
  }
  return combined(x, result, kind);
}

Tensor with_combined_rows(const Tensor& data, const Tensor& positions, const Tensor& rows, ScatterKind kind) {
  const Tensor indices = along_axis(positions, 0, rows.rank());
  return combined(data, combined_updates(indices, rows, 0, data.size(0).unnamed(), kind), kind);
}

Tensor with_joined_dims(const Tensor& data, int last) {
  Shape shape{product(data.shape(), 0, last)};
  for (int i = last; i < data.rank(); ++i) shape.push_back(data.size(i));
  return data.reshape(shape);
}

Tensor with_rows(const Tensor& data, const Tensor& positions, const Tensor& rows, bool adds) {
  return adds ? data + scatter_add(positions, rows, data.size(0)) : update_rows(data, positions, rows);
}

}  // namespace lathe::importing
