#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/constants.h"
#include "models/export/onnx/nodes/export_table.h"

/// Ops without operands, and ops that join tensors.
namespace lathe::onnx {

namespace {

/// Constants with more elements that are all equal are expanded at run time.
constexpr std::int64_t most_elements = 4096;

Text constant_of(const OpExport& op) {
  const Shape& shape = op.result().shape;
  const NumberList values = ir::constant_values(op.node());
  const auto count = shape.numel().value();
  if (values.size() == 1 && (!count || *count > most_elements)) return op.full(shape, values[0], op.dtype());
  NumberList all;
  for (std::int64_t i = 0; i < *count; ++i)
    all.push_back(values[values.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
  return op.constant(HostTensor::from_numbers(shape.evaluate({}), all, op.dtype()));
}

/// A range of i64, which has dims of size 1 around it, and is repeated along the others.
Text iota_of(const OpExport& op) {
  const Shape& shape = op.result().shape;
  const auto axis = static_cast<int>(op.axis("dim", shape.rank()));
  Text range = op.range(shape[axis].unnamed());
  if (op.dtype() != i64) range = op.cast(range, op.dtype());
  Ints axes;
  bool is_repeated = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == axis) continue;
    axes.push_back(i);
    is_repeated = is_repeated || !shape[i].is(1);
  }
  if (!axes.empty()) range = op.unsqueeze(range, axes);
  return is_repeated ? op.expand(range, shape) : range;
}

Text concat_of(const OpExport& op) {
  return op.add("Concat", op.operands(), {integer_attribute("axis", op.axis("dim", op.rank()))});
}

Text pad_of(const OpExport& op) {
  const Text pads = op.shape({op.attr<Dim>("low"), op.attr<Dim>("high")});
  return op.add("Pad", {op[0], pads, Text(), op.integers({op.axis("dim", op.rank())})});
}

}  // namespace

std::span<const ExportRecord> source_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::constant, constant_of, "Constant; with Expand if its shape is large or not known"},
      {&ir::ops::iota, iota_of, "Range, Unsqueeze, Expand, Cast"},
      {&ir::ops::concat, concat_of, "Concat"},
      {&ir::ops::pad, pad_of, "Pad"},
  };
  return records;
}

}  // namespace lathe::onnx
