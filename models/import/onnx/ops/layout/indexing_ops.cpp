#include <fmt/core.h>

#include <algorithm>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

/// Ops that read or write elements at indices. Negative indices count from the end, in all of them.
namespace lathe::onnx {

namespace {

/// Returns indices without negative elements. Known ones are changed here, others at run time.
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
  return importing::literal(call.graph(), fixed);
}

Results gather_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", 0), x.rank());
  const Value& indices = call.operand(1);
  if (indices.rank() == 0)
    if (const auto known = indices.dims(); known && known->elements[0].value())
      return {x.select(axis, known->elements[0])};
  return {gather(x, known_from_front(call, 1, x.size(axis).unnamed()), axis)};
}

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

/// Returns the indices; one out of range is an error at run time [index_range]. Sums of indices of several dims would
/// otherwise name another element.
Tensor checked(const Tensor& indices, const Dim& size) {
  const Tensor in_range = from_front(indices, size);
  return gather(indices.graph().arange(size, i64), in_range);
}

/// For indices of the rank of `data`: the row-major numbers of the elements that they name along an axis.
Tensor element_numbers(const OpCall& call, const Shape& data, int axis) {
  const Tensor indices = checked(call.tensor(1).to(i64), data[axis].unnamed());
  return linear_index(call.graph(), data, 0, data.rank(), [&](int i) {
    if (i == axis) return indices;
    return along_axis(call.graph().arange(indices.size(i), i64), i, data.rank());
  });
}

/// Returns whether indices have the sizes of the data along all other axes.
bool covers(const Shape& indices, const Shape& data, int axis) {
  for (int i = 0; i < data.rank(); ++i)
    if (i != axis && indices[i] != data[i]) return false;
  return true;
}

void require_rank(const OpCall& call, int rank) {
  if (call.operand(1).rank() != rank)
    call.fail(fmt::format("the indices have rank {}, and the data {}", call.operand(1).rank(), rank),
              "import_operand");
}

Results gather_elements(const OpCall& call) {
  const Tensor x = call.tensor(0);
  require_rank(call, x.rank());
  const int axis = call.axis(call.integer("axis", 0), x.rank());
  if (covers(call.operand(1).shape(), x.shape(), axis))
    return {take_along(x, known_from_front(call, 1, x.size(axis).unnamed()), axis)};
  return {gather(x.reshape({x.shape().numel()}), element_numbers(call, x.shape(), axis))};
}

/// For indices [.., k]: the row-major numbers of the slices that they name in dims [first, first + k) of the data.
Tensor slice_numbers(const OpCall& call, const Shape& data, int first, int last) {
  const Tensor indices = call.tensor(1).to(i64);
  return linear_index(call.graph(), data, first, last,
                      [&](int i) { return checked(indices.select(-1, i - first), data[i].unnamed()); });
}

/// Returns the number of dims that the last dim of the indices addresses.
int addressed_dims(const OpCall& call, int rank) {
  const Shape indices = call.operand(1).shape();
  const auto count = indices.rank() == 0 ? std::nullopt : indices[indices.rank() - 1].value();
  if (!count || *count < 1 || *count > rank)
    call.fail(fmt::format("the last dim of the indices {} is not from 1 to {}", indices.to_string(), rank),
              "import_operand");
  return static_cast<int>(*count);
}

/// The data with dims [0, last) as one.
Tensor with_joined_dims(const Tensor& data, int last) {
  Shape shape{product(data.shape(), 0, last)};
  for (int i = last; i < data.rank(); ++i) shape.push_back(data.size(i));
  return data.reshape(shape);
}

Results gather_nd(const OpCall& call) {
  const Tensor data = call.tensor(0);
  const auto batch_dims = static_cast<int>(std::clamp<std::int64_t>(call.integer("batch_dims", 0), 0, data.rank()));
  const int last = batch_dims + addressed_dims(call, data.rank() - batch_dims);
  Tensor numbers = slice_numbers(call, data.shape(), batch_dims, last);
  if (batch_dims > 0) {
    const Dim batches = product(data.shape(), 0, batch_dims), slices = product(data.shape(), batch_dims, last);
    Shape shape(std::vector<Dim>(static_cast<std::size_t>(numbers.rank()), Dim(1)));
    for (int i = 0; i < batch_dims; ++i) shape.set(i, data.size(i));
    numbers = numbers + (call.graph().arange(batches, i64) * call.graph().dim_value(slices)).reshape(shape);
  }
  return {gather(with_joined_dims(data, last), numbers)};
}

/// Writes rows at positions along dim 0: replaces them, or adds to them.
Tensor written(const OpCall& call, const Tensor& data, const Tensor& positions, const Tensor& rows) {
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none") return update_rows(data, positions, rows);
  if (reduction == "add") return data + scatter_add(positions, rows, data.size(0));
  call.fail(fmt::format("the attribute reduction is '{}'; none and add are supported", reduction));
}

Results scatter_nd(const OpCall& call) {
  const Tensor data = call.tensor(0), updates = call.tensor(2);
  const int last = addressed_dims(call, data.rank());
  const Tensor numbers = slice_numbers(call, data.shape(), 0, last);
  const Dim count = numbers.shape().numel();
  Shape rows{count};
  for (int i = last; i < data.rank(); ++i) rows.push_back(data.size(i));
  return {written(call, with_joined_dims(data, last), numbers.reshape({count}), updates.reshape(rows))
              .reshape(data.shape())};
}

Results scatter_elements(const OpCall& call) {
  const Tensor data = call.tensor(0), updates = call.tensor(2);
  require_rank(call, data.rank());
  const int axis = call.axis(call.integer("axis", 0), data.rank());
  const Dim count = updates.shape().numel();
  const Tensor numbers = element_numbers(call, data.shape(), axis);
  return {written(call, data.reshape({data.shape().numel()}), numbers.reshape({count}), updates.reshape({count}))
              .reshape(data.shape())};
}

/// values: [off, on]. An index out of [-depth, depth) has no 1.
Results one_hot_op(const OpCall& call) {
  const Tensor values = call.tensor(2), given = call.tensor(0), indices = given.to(i64);
  const std::vector<Dim> depth = call.dims(1, "the depth");
  if (depth.size() != 1) call.fail("the depth has more than one element", "import_operand");
  const int axis = call.axis(call.integer("axis", -1), indices.rank() + 1);
  const Tensor positions = along_axis(call.graph().arange(depth[0], i64), axis, indices.rank() + 1);
  const Tensor is_at = from_front(indices, depth[0]).unsqueeze(axis) == positions;
  return {where(is_at, values.select(0, 1), values.select(0, 0))};
}

/// Reverses the first elements of each sequence, as many as its length.
Results reverse_sequence(const OpCall& call) {
  const Tensor x = call.tensor(0), lengths = call.tensor(1).to(i64);
  const int time = call.axis(call.integer("time_axis", 0), x.rank()),
            batch = call.axis(call.integer("batch_axis", 1), x.rank());
  const Tensor at = along_axis(call.graph().arange(x.size(time), i64), time, x.rank());
  const Tensor length = along_axis(lengths, batch, x.rank());
  return {take_along(x, where(at < length, length - 1 - at, at).expand(x.shape()), time)};
}

}  // namespace

std::span<const OpRecord> indexing_ops() {
  static constexpr OpRecord records[] = {
      {"Gather", 1, latest, "axis", gather_op, Moves::first},
      {"GatherElements", 11, latest, "axis", gather_elements, Moves::first},
      {"GatherND", 11, 11, "", gather_nd, Moves::first},
      {"GatherND", 12, latest, "batch_dims", gather_nd, Moves::first},
      {"ScatterND", 11, 15, "", scatter_nd},
      {"ScatterND", 16, latest, "reduction", scatter_nd},
      {"Scatter", 9, 10, "axis", scatter_elements},
      {"ScatterElements", 11, 15, "axis", scatter_elements},
      {"ScatterElements", 16, latest, "axis reduction", scatter_elements},
      {"OneHot", 9, latest, "axis", one_hot_op},
      {"ReverseSequence", 10, latest, "batch_axis time_axis", reverse_sequence},
  };
  return records;
}

}  // namespace lathe::onnx
