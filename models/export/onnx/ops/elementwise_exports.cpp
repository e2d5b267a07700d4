#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/export_table.h"

/// Element-wise ops. Both formats broadcast by NumPy's rules.
namespace lathe::onnx {

namespace {

/// An op of the same meaning. `lacks_bf16`: before opset 22 it has no bf16.
template <const char* name, bool lacks_bf16 = false>
Text same(const OpExport& op) {
  return op.without_bf16(lacks_bf16 && op.opset() < 22,
                         [&](const std::vector<Text>& operands) { return op.add(name, operands); });
}

// Names as template arguments need storage of their own.
constexpr char add_name[] = "Add", sub_name[] = "Sub", mul_name[] = "Mul", min_name[] = "Min", max_name[] = "Max",
               pow_name[] = "Pow", neg_name[] = "Neg", abs_name[] = "Abs", sign_name[] = "Sign",
               floor_name[] = "Floor", round_name[] = "Round", exp_name[] = "Exp", log_name[] = "Log",
               sqrt_name[] = "Sqrt", sin_name[] = "Sin", cos_name[] = "Cos", tanh_name[] = "Tanh", erf_name[] = "Erf",
               and_name[] = "And", or_name[] = "Or", not_name[] = "Not";

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
Text cast_of(const OpExport& op) { return op.cast(op[0], op.dtype()); }

}  // namespace

std::span<const ExportRecord> elementwise_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::add, same<add_name>, "Add"},
      {&ir::ops::sub, same<sub_name>, "Sub"},
      {&ir::ops::mul, same<mul_name>, "Mul"},
      {&ir::ops::minimum, same<min_name>, "Min"},
      {&ir::ops::maximum, same<max_name>, "Max"},
      {&ir::ops::pow, same<pow_name>, "Pow"},
      {&ir::ops::neg, same<neg_name>, "Neg"},
      {&ir::ops::abs, same<abs_name>, "Abs"},
      {&ir::ops::sign, same<sign_name>, "Sign"},
      {&ir::ops::floor, same<floor_name>, "Floor"},
      {&ir::ops::round, same<round_name, true>, "Round"},
      {&ir::ops::exp, same<exp_name>, "Exp"},
      {&ir::ops::log, same<log_name>, "Log"},
      {&ir::ops::sqrt, same<sqrt_name>, "Sqrt"},
      {&ir::ops::rsqrt, rsqrt_of, "Sqrt, Reciprocal"},
      {&ir::ops::sin, same<sin_name, true>, "Sin"},
      {&ir::ops::cos, same<cos_name, true>, "Cos"},
      {&ir::ops::tanh, same<tanh_name>, "Tanh"},
      {&ir::ops::erf, same<erf_name>, "Erf"},
      {&ir::ops::eq, eq_of, "Equal"},
      {&ir::ops::ne, ne_of, "Equal, Not"},
      {&ir::ops::lt, lt_of, "Less"},
      {&ir::ops::le, le_of, "LessOrEqual"},
      {&ir::ops::logical_and, same<and_name>, "And"},
      {&ir::ops::logical_or, same<or_name>, "Or"},
      {&ir::ops::logical_not, same<not_name>, "Not"},
      {&ir::ops::where, where_of, "Where; of bools And, Or, Not"},
      {&ir::ops::cast, cast_of, "Cast"},
  };
  return records;
}

}  // namespace lathe::onnx
