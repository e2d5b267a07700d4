#include <algorithm>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/op/op.h"
#include "models/export/onnx/nodes/export_table.h"

/// Products and convolutions.
namespace lathe::onnx {

namespace {

Text einsum(const OpExport& op, const std::string& equation) {
  return op.without_bf16(true, [&](const std::vector<Text>& operands) {
    return op.add("Einsum", operands, {text_attribute("equation", op.keep(equation))});
  });
}

/// Whether the labels are those of MatMul: batch dims, rows and columns.
bool is_matmul(const ir::ContractionRoles& roles) {
  const std::string batch = roles.batch();
  return roles.contracted().size() == 1 && roles.lhs_free().size() == 1 && roles.rhs_free().size() == 1 &&
         roles.lhs == batch + roles.lhs_free() + roles.contracted() &&
         roles.rhs == batch + roles.contracted() + roles.rhs_free() &&
         roles.out == batch + roles.lhs_free() + roles.rhs_free();
}

Text contract_of(const OpExport& op) {
  if (is_matmul(op.node().op->as<ir::Contraction>()->roles(op.node()))) return op.add("MatMul", op.operands());
  return einsum(op, op.attr<std::string>("spec"));
}

/// Implied results and ellipses have other rules in ONNX: those equations are expanded.
bool has_plain_equation(const ir::Node& node, std::span<const ir::Value>, std::int64_t) {
  const auto& equation = node.attrs.get<std::string>("equation");
  return equation.find("->") != std::string::npos && equation.find('.') == std::string::npos;
}
Text einsum_of(const OpExport& op) { return einsum(op, op.attr<std::string>("equation")); }

/// A Gemm for a matrix; otherwise, MatMul with the transposed weight.
Text linear_of(const OpExport& op) {
  if (op.rank() == 2) return op.add("Gemm", op.operands(), {integer_attribute("transB", 1)});
  const Text product = op.add("MatMul", {op[0], op.transpose(op[1], {1, 0})});
  return op.count() > 2 ? op.add("Add", {product, op[2]}) : product;
}

Text conv_of(const OpExport& op) {
  Ints pads = op.attr<Ints>("low");
  const Ints& high = op.attr<Ints>("high");
  pads.insert(pads.end(), high.begin(), high.end());
  return op.without_bf16(op.opset() < 22, [&](const std::vector<Text>& operands) {
    return op.add("Conv", operands,
                  {integers_attribute("strides", op.attr<Ints>("stride")), integers_attribute("pads", pads),
                   integers_attribute("dilations", op.attr<Ints>("dilation")),
                   integer_attribute("group", op.attr<std::int64_t>("groups"))});
  });
}

/// bool [rows, 1]: whether a row is in segment `i` of the offsets, operand `offsets`.
Text is_in_segment(const OpExport& op, std::size_t offsets, std::int64_t i, const Dim& rows) {
  const DType dtype = op.type(offsets).dtype;
  const Text given = op[offsets];
  Text row = op.range(rows);
  if (dtype != i64) row = op.cast(row, dtype);
  const auto offset = [&](std::int64_t at) { return op.add("Gather", {given, op.scalar(at, i64)}); };
  const Text is_in = op.add("And", {op.add("LessOrEqual", {offset(i), row}), op.add("Less", {row, offset(i + 1)})});
  return op.unsqueeze(is_in, {1});
}

/// Multiplies all rows by each weight, and selects those of its segment: other rows are 0.
Text grouped_matmul_of(const OpExport& op) {
  Text result = op.scalar(0, op.dtype());
  const Dim rows = op.type(0).shape[0].unnamed();
  for (std::size_t i = 2; i < op.count(); ++i) {
    const Text product = op.add("MatMul", {op[0], op.transpose(op[i], {1, 0})});
    result = op.add("Where", {is_in_segment(op, 1, static_cast<std::int64_t>(i) - 2, rows), product, result});
  }
  return result;
}

Text segment_outer_of(const OpExport& op) {
  const Text mask = is_in_segment(op, 2, op.attr<std::int64_t>("segment"), op.type(0).shape[0].unnamed());
  const Text zero = op.scalar(0, op.dtype());
  const Text a = op.add("Where", {mask, op[0], zero}), b = op.add("Where", {mask, op[1], zero});
  return op.add("MatMul", {op.transpose(a, {1, 0}), b});
}

}  // namespace

std::span<const ExportRecord> product_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::contract, contract_of, "MatMul or Einsum"},
      {&ir::ops::matmul, same_op<"MatMul">, "MatMul"},
      {&ir::ops::einsum, einsum_of, "Einsum", has_plain_equation},
      {&ir::ops::linear, linear_of, "Gemm; Transpose, MatMul, Add for more than two dims"},
      {&ir::ops::conv, conv_of, "Conv"},
      {&ir::ops::grouped_matmul, grouped_matmul_of, "MatMul and Where for each weight"},
      {&ir::ops::segment_outer, segment_outer_of, "Where, Transpose, MatMul"},
  };
  return records;
}

}  // namespace lathe::onnx
