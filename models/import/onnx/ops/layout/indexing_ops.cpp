#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/indexing_functions.h"
#include "models/import/ops/scatter_functions.h"

/// Ops that read or write elements at indices. Negative indices count from the end, in all of them.
namespace lathe::onnx {

namespace {

using importing::checked;
using importing::linear_index;
using importing::ScatterKind;
using importing::with_joined_dims;

Results gather_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", 0), x.rank());
  return {importing::gathered(call, x, 1, axis)};
}

Results gather_elements(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {importing::gathered_along(call, x, 1, call.axis(call.integer("axis", 0), x.rank()))};
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

ScatterKind kind_of(const OpCall& call) {
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none") return ScatterKind::replace;
  if (reduction == "add") return ScatterKind::add;
  if (reduction == "mul") return ScatterKind::multiply;
  if (reduction == "max") return ScatterKind::largest;
  if (reduction == "min") return ScatterKind::smallest;
  call.fail(fmt::format("the attribute reduction is '{}', not none, add, mul, max or min", reduction),
            "import_attribute");
}

Results scatter_nd(const OpCall& call) {
  const Tensor data = call.tensor(0), updates = call.tensor(2);
  const int last = addressed_dims(call, data.rank());
  const Tensor numbers = slice_numbers(call, data.shape(), 0, last);
  const Dim count = numbers.shape().numel();
  Shape rows{count};
  for (int i = last; i < data.rank(); ++i) rows.push_back(data.size(i));
  const Tensor result = importing::with_rows(with_joined_dims(data, last), numbers.reshape({count}),
                                             updates.reshape(rows), {.kind = kind_of(call)});
  return {result.reshape(data.shape())};
}

Results scatter_elements(const OpCall& call) {
  const Tensor data = call.tensor(0);
  const int axis = call.axis(call.integer("axis", 0), data.rank());
  return {importing::scattered_along(call, data, 1, call.tensor(2), axis, {.kind = kind_of(call)})};
}

/// The depth may be a float.
std::vector<Dim> depth_of(const OpCall& call) {
  if (!is_float(call.dtype(1))) return call.dims(1, "the depth");
  const HostTensor& number = call.numbers(1, "the depth");
  if (number.numel() != 1 || number.get(0) != std::floor(number.get(0)))
    call.fail("the depth is not one whole number", "import_operand");
  return {Dim(static_cast<std::int64_t>(number.get(0)))};
}

/// values: [off, on]. An index out of [-depth, depth) has no 1.
Results one_hot_op(const OpCall& call) {
  const Tensor values = call.tensor(2), given = call.tensor(0), indices = given.to(i64);
  const std::vector<Dim> depth = depth_of(call);
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
