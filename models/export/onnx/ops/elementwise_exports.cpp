#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"

/// Element-wise ops. Both formats broadcast by NumPy's rules.
namespace lathe::onnx {

namespace {

Text rsqrt_of(const OpExport& op) { return op.add("Reciprocal", {op.add("Sqrt", {op[0]})}); }

/// Bytes are compared as i32, as Lathe does: ONNX Runtime does not compare all of them.
std::vector<Text> comparable(const OpExport& op) {
  std::vector<Text> operands;
  for (std::size_t i = 0; i < op.count(); ++i)
    operands.push_back(is_byte(op.type(i).dtype) ? op.cast(op[i], i32) : op[i]);
  return operands;
}
Text eq_of(const OpExport& op) { return op.add("Equal", comparable(op)); }
Text ne_of(const OpExport& op) { return op.add("Not", {op.add("Equal", comparable(op))}); }
Text lt_of(const OpExport& op) { return op.add("Less", comparable(op)); }
Text le_of(const OpExport& op) { return op.add("LessOrEqual", comparable(op)); }

Text where_of(const OpExport& op) { return op.where(op[0], op[1], op[2], op.dtype()); }
/// ONNX does not define casts of floats that are out of range. Bytes, which are often, are limited first.
Text cast_of(const OpExport& op) {
  const DType from = op.type(0).dtype, to = op.dtype();
  if (!is_byte(to) || !is_float(from)) return op.cast(op[0], to);
  const IntegerLimits limits = integer_limits(to);
  return op.cast(op.add("Clip", {op[0], op.scalar(limits.lowest, from), op.scalar(limits.highest, from)}), to);
}

}  // namespace

std::span<const ExportRecord> elementwise_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::add, same_op<"Add">, "Add"},
      {&ir::ops::sub, same_op<"Sub">, "Sub"},
      {&ir::ops::mul, same_op<"Mul">, "Mul"},
      {&ir::ops::minimum, same_op<"Min">, "Min"},
      {&ir::ops::maximum, same_op<"Max">, "Max"},
      {&ir::ops::pow, same_op<"Pow">, "Pow"},
      {&ir::ops::neg, same_op<"Neg">, "Neg"},
      {&ir::ops::abs, same_op<"Abs">, "Abs"},
      {&ir::ops::sign, same_op<"Sign">, "Sign"},
      {&ir::ops::floor, same_op<"Floor">, "Floor"},
      {&ir::ops::round, same_float_op<"Round">, "Round"},
      {&ir::ops::exp, same_op<"Exp">, "Exp"},
      {&ir::ops::log, same_op<"Log">, "Log"},
      {&ir::ops::sqrt, same_op<"Sqrt">, "Sqrt"},
      {&ir::ops::rsqrt, rsqrt_of, "Sqrt, Reciprocal"},
      {&ir::ops::sin, same_float_op<"Sin">, "Sin"},
      {&ir::ops::cos, same_float_op<"Cos">, "Cos"},
      {&ir::ops::tanh, same_op<"Tanh">, "Tanh"},
      {&ir::ops::erf, same_op<"Erf">, "Erf"},
      {&ir::ops::eq, eq_of, "Equal"},
      {&ir::ops::ne, ne_of, "Equal, Not"},
      {&ir::ops::lt, lt_of, "Less"},
      {&ir::ops::le, le_of, "LessOrEqual"},
      {&ir::ops::logical_and, same_op<"And">, "And"},
      {&ir::ops::logical_or, same_op<"Or">, "Or"},
      {&ir::ops::logical_not, same_op<"Not">, "Not"},
      {&ir::ops::where, where_of, "Where; of bools And, Or, Not"},
      {&ir::ops::cast, cast_of, "Cast; Clip before a cast of floats to bytes"},
  };
  return records;
}

}  // namespace lathe::onnx
