#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"

/// Ops that rearrange elements. ONNX has no strides: each is an op that may copy.
namespace lathe::onnx {

namespace {

Ints order_of(int rank) {
  Ints order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Text transpose_of(const OpExport& op) {
  Ints perm = order_of(op.rank());
  std::swap(perm[static_cast<std::size_t>(op.axis("dim0", op.rank()))],
            perm[static_cast<std::size_t>(op.axis("dim1", op.rank()))]);
  return op.transpose(op[0], perm);
}

Text permute_of(const OpExport& op) {
  Ints perm = op.attr<Ints>("dims");
  for (std::int64_t& dim : perm)
    if (dim < 0) dim += op.rank();
  return op.transpose(op[0], perm);
}

Text expand_of(const OpExport& op) { return op.expand(op[0], op.result().shape); }

/// A size of 0 in the shape keeps the size of the operand at the same place.
Text reshape_of(const OpExport& op) {
  const Shape &from = op.type(0).shape, &to = op.result().shape;
  const bool has_zero = std::any_of(to.begin(), to.end(), [](const Dim& size) { return size.is(0); });
  Shape wanted;
  bool is_known = !has_zero;
  for (int i = 0; i < to.rank(); ++i) {
    const bool is_kept = !has_zero && !to[i].value() && i < from.rank() && from[i] == to[i];
    wanted.push_back(is_kept ? Dim(0) : to[i].unnamed());
    is_known = is_known && (is_kept || to[i].value());
  }
  if (is_known) return op.add("Reshape", {op[0], op.shape(wanted)});
  return op.reshape(op[0], to);
}

/// The end of a dim is the largest number, so that no size is computed for it.
Text slice_of(const OpExport& op) {
  const Shape& shape = op.type(0).shape;
  const std::int64_t axis = op.axis("dim", shape.rank());
  const Dim &start = op.attr<Dim>("start"), &stop = op.attr<Dim>("stop");
  const bool is_end = stop == shape[static_cast<int>(axis)] && !stop.value();
  const Text end = is_end ? op.integers({std::numeric_limits<std::int64_t>::max()}) : op.vector(stop);
  std::vector<Text> inputs{op[0], op.vector(start), end, op.integers({axis})};
  if (const auto step = op.attr<std::int64_t>("step"); step != 1) inputs.push_back(op.integers({step}));
  return op.add("Slice", std::move(inputs));
}

/// From the last element to the first by -1; the stop is before the first of any size.
Text flip_of(const OpExport& op) {
  return op.add("Slice", {op[0], op.integers({-1}), op.integers({std::numeric_limits<std::int64_t>::min()}),
                          op.integers({op.axis("dim", op.rank())}), op.integers({-1})});
}

Text unsqueeze_of(const OpExport& op) { return op.unsqueeze(op[0], {op.axis("dim", op.rank())}); }
Text squeeze_of(const OpExport& op) {
  return op.add("Squeeze", {op[0], op.integers({op.axis("dim", op.rank() + 1)})});
}

/// The elements of both dims in a row, of which every (n + 1)-th is on the diagonal.
Text diagonal_of(const OpExport& op) {
  const Shape& shape = op.type(0).shape;
  const std::int64_t a = op.axis("dim0", shape.rank()), b = op.axis("dim1", shape.rank());
  Ints perm = order_of(shape.rank());
  std::erase_if(perm, [&](std::int64_t dim) { return dim == a || dim == b; });
  Shape flat;
  for (const std::int64_t dim : perm) flat.push_back(shape[static_cast<int>(dim)]);
  const Dim size = shape[static_cast<int>(a)].unnamed();
  perm.insert(perm.end(), {a, b});
  flat.push_back(size * size);
  const Text row = op.reshape(op.transpose(op[0], perm), flat);
  const Text positions = op.add("Mul", {op.range(size), op.size(size + Dim(1))});
  return op.add("Gather", {row, positions}, {integer_attribute("axis", shape.rank() - 2)});
}

/// Gathers element i * step + k * dilation for window i and its element k, which becomes the last dim.
Text unfold_of(const OpExport& op) {
  const int rank = op.rank() - 1;
  const std::int64_t axis = op.axis("dim", rank), size = op.attr<std::int64_t>("size"),
                     dilation = op.attr<std::int64_t>("dilation");
  Ints elements(static_cast<std::size_t>(size));
  for (std::int64_t k = 0; k < size; ++k) elements[static_cast<std::size_t>(k)] = k * dilation;
  const Text starts = op.add(
      "Mul", {op.range(op.result().shape[static_cast<int>(axis)]), op.scalar(op.attr<std::int64_t>("step"), i64)});
  const Text positions = op.add("Add", {op.unsqueeze(starts, {1}), op.integers(elements)});
  const Text windows = op.add("Gather", {op[0], positions}, {integer_attribute("axis", axis)});
  Ints perm = order_of(op.rank());
  std::rotate(perm.begin() + axis + 1, perm.begin() + axis + 2, perm.end());
  return op.transpose(windows, perm);
}

/// Layouts are not part of the format.
Text operand_of(const OpExport& op) { return op[0]; }

}  // namespace

std::span<const ExportRecord> view_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::transpose, transpose_of, "Transpose"},
      {&ir::ops::permute, permute_of, "Transpose"},
      {&ir::ops::expand, expand_of, "Expand"},
      {&ir::ops::slice, slice_of, "Slice"},
      {&ir::ops::flip, flip_of, "Slice"},
      {&ir::ops::view, reshape_of, "Reshape"},
      {&ir::ops::reshape, reshape_of, "Reshape"},
      {&ir::ops::contiguous, operand_of, "no node"},
      {&ir::ops::stop_gradient, operand_of, "no node"},
      {&ir::ops::straight_through, operand_of, "no node"},
      {&ir::ops::unsqueeze, unsqueeze_of, "Unsqueeze"},
      {&ir::ops::squeeze, squeeze_of, "Squeeze"},
      {&ir::ops::diagonal, diagonal_of, "Transpose, Reshape, Range, Mul, Gather"},
      {&ir::ops::unfold, unfold_of, "Range, Mul, Add, Gather, Transpose"},
  };
  return records;
}

}  // namespace lathe::onnx
