#include "models/import/ops/indexing_functions.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe::importing {

namespace {

/// Returns whether indices have the sizes of the data along all other axes.
bool covers(const Shape& indices, const Shape& data, int axis) {
  for (int i = 0; i < data.rank(); ++i)
    if (i != axis && indices[i] != data[i]) return false;
  return true;
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

Tensor element_numbers(const Tensor& indices, const Shape& data, int axis) {
  const Graph graph = indices.graph();
  return linear_index(graph, data, 0, data.rank(), [&](int i) {
    return i == axis ? indices : along_axis(graph.arange(indices.size(i), i64), i, data.rank());
  });
}

void require_rank(const OpCall& call, std::size_t i, int rank) {
  if (call.operand(i).rank() != rank)
    call.fail(fmt::format("the indices have rank {}, and the data {}", call.operand(i).rank(), rank),
              "import_operand");
}

Tensor gathered_along(const OpCall& call, const Tensor& x, std::size_t i, int axis) {
  require_rank(call, i, x.rank());
  if (covers(call.operand(i).shape(), x.shape(), axis))
    return take_along(x, known_from_front(call, i, x.size(axis).unnamed()), axis);
  const Tensor indices = checked(call.tensor(i).to(i64), x.size(axis).unnamed());
  return gather(x.reshape({x.shape().numel()}), element_numbers(indices, x.shape(), axis));
}

Tensor with_joined_dims(const Tensor& data, int last) {
  Shape shape{product(data.shape(), 0, last)};
  for (int i = last; i < data.rank(); ++i) shape.push_back(data.size(i));
  return data.reshape(shape);
}

}  // namespace lathe::importing
