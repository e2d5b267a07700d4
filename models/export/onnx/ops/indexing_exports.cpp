#include <numeric>

#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"

/// Ops that read or write elements at indices. Indices out of range are errors in Lathe; ONNX counts negative ones
/// from the end.
namespace lathe::onnx {

namespace {

Text gather_of(const OpExport& op) {
  return op.add("Gather", {op[0], op[1]}, {integer_attribute("axis", op.axis("dim", op.type(0).rank()))});
}

/// Returns the dims [first, last) of `count`, then all others.
Ints front_order(int count, int first, int last) {
  Ints order;
  for (int i = first; i < last; ++i) order.push_back(i);
  for (int i = 0; i < count; ++i)
    if (i < first || i >= last) order.push_back(i);
  return order;
}

/// ScatterND adds to slices of the first dim, so the dims of the indices are moved to the front and back.
Text scatter_add_of(const OpExport& op) {
  const int indices = op.type(0).rank(), updates = op.type(1).rank(), rank = op.rank();
  const auto axis = static_cast<int>(op.axis("dim", rank));
  Shape moved{op.result().shape[axis]};
  for (int i = 0; i < rank; ++i)
    if (i != axis) moved.push_back(op.result().shape[i]);
  const Text rows = axis == 0 ? op[1] : op.transpose(op[1], front_order(updates, axis, axis + indices));
  const Text at = op.unsqueeze(op.type(0).dtype == i64 ? op[0] : op.cast(op[0], i64), {indices});
  const Text sums =
      op.add("ScatterND", {op.full(moved, 0, op.dtype()), at, rows}, {text_attribute("reduction", "add")});
  if (axis == 0) return sums;
  Ints back;
  for (int i = 0; i < rank; ++i) back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return op.transpose(sums, back);
}

/// Positions [t] or [b, t] are repeated to those of all elements of the rows.
Text update_rows_of(const OpExport& op) {
  const int rank = op.rank(), positions = op.type(1).rank();
  const auto axis = static_cast<int>(op.axis("dim", rank));
  const Shape& rows = op.type(2).shape;
  if (rows.numel().is(0)) return op[0];
  Text at = op[1];
  if (positions != rank) {
    Ints added;
    for (int i = 0; i < rank; ++i)
      if (i != axis && !(positions == 2 && i == 0)) added.push_back(i);
    if (!added.empty()) at = op.unsqueeze(at, added);
  }
  if (positions != rank || op.type(1).shape != rows) at = op.expand(at, rows);
  return op.add("ScatterElements", {op[0], at, op[2]}, {integer_attribute("axis", axis)});
}

}  // namespace

std::span<const ExportRecord> indexing_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::gather, gather_of, "Gather"},
      {&ir::ops::scatter_add, scatter_add_of, "ScatterND, Transpose"},
      {&ir::ops::update_rows, update_rows_of, "Unsqueeze, Expand, ScatterElements"},
  };
  return records;
}

}  // namespace lathe::onnx
