#include <numbers>

#include "ir/ops/composites/composites.h"
#include "ir/tensor/builder.h"
#include "models/export/onnx/nodes/export_table.h"

/// Activations and masks.
namespace lathe::onnx {

namespace {

/// Formulas round after each op, and the op only once: 16-bit floats are expanded, in f32.
bool is_wide(const ir::Node& node, std::span<const ir::Value>, std::int64_t) {
  return node.type.dtype == f32 || node.type.dtype == f64;
}

Text silu_of(const OpExport& op) { return op.add("Mul", {op[0], op.add("Sigmoid", {op[0]})}); }

/// The formulas of torch's exporter, which runtimes recognize: 0.5 x (1 + erf(x / sqrt(2))), and that with tanh.
Text gelu_formula(const OpExport& op, bool is_tanh) {
  const auto number = [&](double value) { return op.scalar(value, op.dtype()); };
  Text gate;
  if (is_tanh) {
    const Text cube = op.add("Mul", {op.add("Mul", {op[0], op[0]}), op[0]});
    const Text sum = op.add("Add", {op[0], op.add("Mul", {cube, number(0.044715)})});
    gate = op.add("Tanh", {op.add("Mul", {sum, number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi)})});
  } else {
    gate = op.add("Erf", {op.add("Mul", {op[0], number(std::numbers::sqrt2 / 2)})});
  }
  return op.add("Mul", {op.add("Mul", {op[0], op.add("Add", {gate, number(1)})}), number(0.5)});
}

Text gelu_of(const OpExport& op) {
  const bool is_tanh = op.attr<std::string>("approximate") == "tanh";
  if (op.opset() < 20) return gelu_formula(op, is_tanh);
  return op.add("Gelu", {op[0]}, {text_attribute("approximate", is_tanh ? "tanh" : "none")});
}

Text clamp_of(const OpExport& op) {
  return op.add(
      "Clip", {op[0], op.scalar(op.attr<Number>("low"), op.dtype()), op.scalar(op.attr<Number>("high"), op.dtype())});
}

/// Clip has no defined result for low > high.
bool has_ordered_limits(const ir::Node& node, std::span<const ir::Value>, std::int64_t) {
  return node.attrs.get<Number>("low").real() <= node.attrs.get<Number>("high").real();
}

template <bool is_upper>
Text triangle_of(const OpExport& op) {
  return op.add("Trilu", {op[0], op.scalar(op.attr<std::int64_t>("diagonal"), i64)},
                {integer_attribute("upper", is_upper)});
}

Text masked_fill_of(const OpExport& op) {
  return op.where(op[1], op.scalar(op.attr<Number>("value"), op.dtype()), op[0], op.dtype());
}

}  // namespace

std::span<const ExportRecord> activation_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::relu, same_op<"Relu">, "Relu"},
      {&ir::ops::sigmoid, same_op<"Sigmoid">, "Sigmoid"},
      {&ir::ops::softplus, same_float_op<"Softplus">, "Softplus"},
      {&ir::ops::reciprocal, same_op<"Reciprocal">, "Reciprocal"},
      {&ir::ops::silu, silu_of, "Sigmoid, Mul", is_wide},
      {&ir::ops::gelu, gelu_of, "Gelu; before opset 20 its formula", is_wide},
      {&ir::ops::clamp, clamp_of, "Clip", has_ordered_limits},
      {&ir::ops::tril, triangle_of<false>, "Trilu"},
      {&ir::ops::triu, triangle_of<true>, "Trilu"},
      {&ir::ops::masked_fill, masked_fill_of, "Where"},
  };
  return records;
}

}  // namespace lathe::onnx
