#include <algorithm>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/builder.h"
#include "models/export/onnx/nodes/export_table.h"
#include "models/export/onnx/recognize_attention.h"

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

/// No offset. A query that sees no key gives 0 in ONNX; one of a graph without zero_masked gives NaN, and is exported
/// all the same. The scale is an f32.
bool has_attention(const ir::Node& node, Operands operands, std::int64_t opset) {
  if (opset < 23 || node.type.dtype == f64) return false;
  if (node.attrs.get<bool>("offset") || node.attrs.get<bool>("zero_masked")) return false;
  return is_onnx_attention(operands, node.attrs.get<bool>("causal"));
}

/// A mask has all queries and keys.
Text attention_of(const OpExport& op) {
  std::vector<Text> inputs = op.operands();
  if (op.count() > 3) {
    Shape mask = op.type(3).shape;
    const Dim &queries = op.type(0).shape[2], &keys = op.type(1).shape[2];
    const int rank = mask.rank();
    if (mask[rank - 2] != queries || mask[rank - 1] != keys) {
      mask.set(rank - 2, queries);
      mask.set(rank - 1, keys);
      inputs[3] = op.expand(inputs[3], mask);
    }
  }
  Attributes attributes{real_attribute("scale", op.attr<double>("scale"))};
  if (op.attr<bool>("causal")) attributes.push_back(integer_attribute("is_causal", 1));
  return op.add("Attention", std::move(inputs), std::move(attributes));
}

/// Whether the halves of a value's last dim are equal, as in the tables of angles that models build.
bool has_equal_halves(const ir::Value& value) {
  const ir::Node& node = value.node();
  const auto operand = [&](int i) { return ir::Value(value.builder(), node.operands[static_cast<std::size_t>(i)]); };
  const int last = value.rank() - 1;
  if (node.op == &ir::ops::concat)
    return node.operands.size() == 2 && node.operands[0] == node.operands[1] &&
           ir::rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), value.rank()) == last;
  if (node.op == &ir::ops::cast || node.op == &ir::ops::cos || node.op == &ir::ops::sin)
    return has_equal_halves(operand(0));
  if (node.op == &ir::ops::unsqueeze)
    return ir::rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), value.rank()) < last &&
           has_equal_halves(operand(0));
  if (node.op != &ir::ops::mul) return false;
  // A factor of all angles.
  return (operand(1).rank() == 0 && has_equal_halves(operand(0))) ||
         (operand(0).rank() == 0 && has_equal_halves(operand(1)));
}

/// x [B, h, S, d] with tables [S, d], [1, S, d], or [B or 1, 1, S, d]. The op has no f64.
bool has_rotary_embedding(const ir::Node& node, Operands operands, std::int64_t opset) {
  const Shape& x = operands[0].shape();
  if (opset < 23 || node.type.dtype == f64 || x.rank() != 4 || !x[3].divided_by(2)) return false;
  for (const ir::Value& table : {operands[1], operands[2]}) {
    const Shape& shape = table.shape();
    const int rank = shape.rank();
    if (rank < 2 || rank > 4 || shape[rank - 1] != x[3] || shape[rank - 2] != x[2]) return false;
    if (rank == 3 && !shape[0].is(1)) return false;
    if (rank == 4 && (!shape[1].is(1) || (!shape[0].is(1) && shape[0] != x[0]))) return false;
    if (!has_equal_halves(table)) return false;
  }
  return true;
}

/// The tables of ONNX have one half, for each sequence: [B, S, d / 2].
Text rope_of(const OpExport& op) {
  const Shape& x = op.type(0).shape;
  const Dim half = *x[3].divided_by(2);
  const auto table = [&](std::size_t i) {
    const Shape& shape = op.type(i).shape;
    const int rank = shape.rank();
    Text value = op.add("Slice", {op[i], op.integers({0}), op.vector(half), op.integers({rank - 1})});
    if (rank == 2) value = op.unsqueeze(value, {0});
    if (rank == 4) value = op.add("Squeeze", {value, op.integers({1})});
    return rank == 4 && shape[0] == x[0] ? value : op.expand(value, {x[0], x[2], half});
  };
  return op.add("RotaryEmbedding", {op[0], table(1), table(2)});
}

}  // namespace

std::span<const ExportRecord> network_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::softmax, softmax_of, "Softmax", is_plain_softmax},
      {&ir::ops::log_softmax, log_softmax_of, "LogSoftmax"},
      {&ir::ops::layer_norm, layer_norm_of, "LayerNormalization; of f64 its formula", has_layer_norm},
      {&ir::ops::rms_norm, rms_norm_of, "RMSNormalization; of f64 and before opset 23 its formula", has_rms_norm},
      {&ir::ops::attention, attention_of, "Attention; before opset 23 its expansion", has_attention},
      {&ir::ops::rope, rope_of, "RotaryEmbedding; before opset 23 its expansion", has_rotary_embedding},
  };
  return records;
}

}  // namespace lathe::onnx
