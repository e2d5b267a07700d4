#include <algorithm>

#include "ir/ops/composites/composites.h"
#include "ir/tensor/builder.h"
#include "models/export/onnx/export_table.h"

/// Softmax, norms and attention.
namespace lathe::onnx {

namespace {

using Operands = std::span<const ir::Value>;

Text softmax_of(const OpExport& op) {
  return op.add("Softmax", {op[0]}, {integer_attribute("axis", op.axis("dim", op.rank()))});
}
Text log_softmax_of(const OpExport& op) {
  return op.add("LogSoftmax", {op[0]}, {integer_attribute("axis", op.axis("dim", op.rank()))});
}
/// Softmax of ONNX gives NaN where all elements are -inf.
bool is_plain_softmax(const ir::Node& node, Operands, std::int64_t) { return !node.attrs.get<bool>("zero_masked"); }

/// The norms of ONNX compute the statistics of f64 in f32. f64 has the formulas of exporters, which are recognized at
/// import; those of 16-bit floats would round too often.
bool has_layer_norm(const ir::Node& node, Operands operands, std::int64_t) {
  return node.type.dtype != f64 || operands.size() == 3;
}
bool has_rms_norm(const ir::Node& node, Operands, std::int64_t opset) {
  return opset >= 23 || node.type.dtype == f32 || node.type.dtype == f64;
}

/// x / sqrt(mean(x^2) + eps) along the last dim.
Text normalized(const OpExport& op, Text x) {
  const Text square = op.add("ReduceMean", {op.add("Mul", {x, x}), op.integers({-1})});
  const Text sum = op.add("Add", {square, op.scalar(op.attr<double>("eps"), op.dtype())});
  return op.add("Mul", {x, op.add("Reciprocal", {op.add("Sqrt", {sum})})});
}

Text norm(const OpExport& op, Text name) {
  // A weight is required.
  const Text ones = op.count() > 1 ? op[1] : op.full({op.result().shape[op.rank() - 1]}, 1, op.dtype());
  std::vector<Text> inputs{op[0], ones};
  if (op.count() > 2) inputs.push_back(op[2]);
  return op.add(name, std::move(inputs),
                {integer_attribute("axis", -1), real_attribute("epsilon", op.attr<double>("eps"))});
}

Text layer_norm_of(const OpExport& op) {
  if (op.dtype() != f64) return norm(op, "LayerNormalization");
  const Text centered = op.add("Sub", {op[0], op.add("ReduceMean", {op[0], op.integers({-1})})});
  return op.add("Add", {op.add("Mul", {normalized(op, centered), op[1]}), op[2]});
}

Text rms_norm_of(const OpExport& op) {
  if (op.opset() >= 23 && op.dtype() != f64) return norm(op, "RMSNormalization");
  const Text scaled = normalized(op, op[0]);
  return op.count() > 1 ? op.add("Mul", {scaled, op[1]}) : scaled;
}

/// q [B, h, S, d], k and v [B, kv, T, d]: heads of keys serve one or several heads of queries. No offset, and a row
/// without keys is NaN. A mask has all keys.
bool is_plain_attention(const ir::Node& node, Operands operands, std::int64_t opset) {
  if (opset < 23) return false;
  if (node.attrs.get<bool>("offset") || node.attrs.get<bool>("zero_masked")) return false;
  const Shape &q = operands[0].shape(), &k = operands[1].shape(), &v = operands[2].shape();
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) return false;
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || (q[1] != k[1] && !k[1].is(1))) return false;
  if (operands.size() == 3) return true;
  const Shape& mask = operands[3].shape();
  return mask.rank() >= 2 && mask.rank() <= 4 && mask[mask.rank() - 1] == k[2] && mask[mask.rank() - 2] == q[2] &&
         (mask.rank() < 3 || mask[mask.rank() - 3].is(1) || mask[mask.rank() - 3] == q[1]) &&
         (mask.rank() < 4 || mask[0].is(1) || mask[0] == q[0]);
}

Text attention_of(const OpExport& op) {
  Attributes attributes{real_attribute("scale", op.attr<double>("scale"))};
  if (op.attr<bool>("causal")) attributes.push_back(integer_attribute("is_causal", 1));
  return op.add("Attention", op.operands(), std::move(attributes));
}

}  // namespace

std::span<const ExportRecord> network_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::softmax, softmax_of, "Softmax", is_plain_softmax},
      {&ir::ops::log_softmax, log_softmax_of, "LogSoftmax"},
      {&ir::ops::layer_norm, layer_norm_of, "LayerNormalization; of f64 its formula", has_layer_norm},
      {&ir::ops::rms_norm, rms_norm_of, "RMSNormalization; of f64 and before opset 23 its formula", has_rms_norm},
      {&ir::ops::attention, attention_of, "Attention; before opset 23 its expansion", is_plain_attention},
  };
  return records;
}

}  // namespace lathe::onnx
