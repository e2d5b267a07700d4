#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"

/// Division, remainders and bits. ONNX leaves integer division by 0 undefined, and shifts only unsigned integers.
namespace lathe::onnx {

namespace {

/// Integer operands by which ONNX divides as Lathe does: where b is 0 or -1, the divisor is 1.
struct Division {
  Text by_zero, by_minus_one, quotient;
};

Division division_of(const OpExport& op) {
  const DType dtype = op.dtype();
  const Text by_zero = op.add("Equal", {op[1], op.scalar(0, dtype)}),
             by_minus_one = op.add("Equal", {op[1], op.scalar(-1, dtype)});
  const Text divisor = op.add("Where", {op.add("Or", {by_zero, by_minus_one}), op.scalar(1, dtype), op[1]});
  return {by_zero, by_minus_one, op.add("Div", {op[0], divisor})};
}

/// Whether the divisor is a constant other than 0 and -1.
bool has_plain_divisor(const OpExport& op) {
  const ir::Node& divisor = op.operand_node(1);
  if (divisor.op != &ir::ops::constant) return false;
  const auto& values = divisor.attrs.get<NumberList>("values");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == Number(0) || values[i] == Number(-1)) return false;
  return true;
}

Text div_of(const OpExport& op) {
  if (is_float(op.dtype()) || has_plain_divisor(op)) return op.add("Div", op.operands());
  const Division division = division_of(op);
  const Text quotient = op.add("Where", {division.by_minus_one, op.add("Neg", {op[0]}), division.quotient});
  return op.add("Where", {division.by_zero, op.scalar(0, op.dtype()), quotient});
}

/// a - a / b * b; 0 for a divisor of 0 or -1, which is replaced by 1.
Text rem_of(const OpExport& op) {
  const bool is_plain = has_plain_divisor(op);
  const Text divisor =
      is_plain
          ? op[1]
          : op.add("Where", {op.add("Equal", {op[1], op.scalar(0, op.dtype())}), op.scalar(1, op.dtype()), op[1]});
  if (is_plain) return op.add("Sub", {op[0], op.add("Mul", {op.add("Div", {op[0], divisor}), divisor})});
  const Division division = division_of(op);
  // Where the divisor is -1, the quotient is that by 1, and a - a * 1 is 0 too.
  const Text one = op.add("Where", {division.by_minus_one, op.scalar(1, op.dtype()), divisor});
  return op.add("Sub", {op[0], op.add("Mul", {division.quotient, one})});
}

/// A count of bits: whether it is below the width, and the count or 0.
struct Count {
  Text is_in_range, count;
};

int width_of(DType dtype) { return dtype == i64 ? 64 : 32; }

Count count_of(const OpExport& op) {
  const DType dtype = op.dtype();
  const Text in_range = op.add("And", {op.add("LessOrEqual", {op.scalar(0, dtype), op[1]}),
                                       op.add("Less", {op[1], op.scalar(width_of(dtype), dtype)})});
  return {in_range, op.add("Where", {in_range, op[1], op.scalar(0, dtype)})};
}

/// Returns the element of f(0), f(1), .. at each count.
template <class F>
Text lookup(const OpExport& op, Text count, const F& f) {
  const int width = width_of(op.dtype());
  HostTensor table(op.dtype(), {width});
  for (int i = 0; i < width; ++i) {
    const auto bits = static_cast<std::int64_t>(f(i));
    table.set_int(i, width == 64 ? bits : static_cast<std::int32_t>(bits));
  }
  return op.add("Gather", {op.constant(table), count});
}

std::uint64_t power(int i) { return std::uint64_t{1} << i; }

/// a * 2^b, which wraps as the shift does.
Text shift_left_of(const OpExport& op) {
  const Count by = count_of(op);
  const Text shifted = op.add("Mul", {op[0], lookup(op, by.count, power)});
  return op.add("Where", {by.is_in_range, shifted, op.scalar(0, op.dtype())});
}

/// The bits from b on divide by 2^b without a rest. The division fills the upper bits with the sign: a mask clears
/// them.
Text shift_right_of(const OpExport& op) {
  const Count by = count_of(op);
  const int width = width_of(op.dtype());
  const Text upper = op.add("BitwiseAnd", {op[0], lookup(op, by.count, [](int i) { return ~(power(i) - 1); })});
  const Text quotient = op.add("Div", {upper, lookup(op, by.count, power)});
  const Text mask = lookup(op, by.count, [&](int i) { return i == 0 ? ~std::uint64_t{0} : power(width - i) - 1; });
  return op.add("Where", {by.is_in_range, op.add("BitwiseAnd", {quotient, mask}), op.scalar(0, op.dtype())});
}

}  // namespace

std::span<const ExportRecord> integer_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::div, div_of, "Div; of integers with Where for a divisor of 0"},
      {&ir::ops::rem, rem_of, "Div, Mul, Sub, Where"},
      {&ir::ops::bitwise_and, same_op<"BitwiseAnd">, "BitwiseAnd"},
      {&ir::ops::bitwise_or, same_op<"BitwiseOr">, "BitwiseOr"},
      {&ir::ops::bitwise_xor, same_op<"BitwiseXor">, "BitwiseXor"},
      {&ir::ops::bitwise_not, same_op<"BitwiseNot">, "BitwiseNot"},
      {&ir::ops::shift_left, shift_left_of, "Gather, Mul, Where"},
      {&ir::ops::shift_right_logical, shift_right_of, "Gather, BitwiseAnd, Div, Where"},
  };
  return records;
}

}  // namespace lathe::onnx
