#include "models/export/onnx/write_model.h"

/// The inverse of read_model.cpp: fields have the numbers of onnx.proto.
namespace lathe::onnx {

namespace {

WireMessage encode(const GraphProto& graph);

WireMessage encode(const TensorProto& tensor) {
  WireMessage out;
  out.integers(1, tensor.dims).integer(2, tensor.type).reals(4, tensor.floats);
  const bool is_i64 = tensor.type == static_cast<std::int64_t>(ElementType::int64);
  out.integers(is_i64 ? 7 : 5, tensor.integers).given_text(8, tensor.name);
  if (tensor.raw) out.bytes(9, *tensor.raw);
  out.doubles(10, tensor.doubles);
  for (const auto& [key, value] : tensor.external) out.message(13, WireMessage().text(1, key).text(2, value));
  if (tensor.is_external) out.integer(14, 1);
  return out;
}

WireMessage encode(const DimProto& dim) {
  WireMessage out;
  if (dim.value) out.integer(1, *dim.value);
  return dim.value ? out : out.given_text(2, dim.name);
}

WireMessage encode(const ValueProto& value) {
  WireMessage type;
  type.integer(1, value.type);
  if (value.shape) {
    WireMessage shape;
    for (const DimProto& dim : *value.shape) shape.message(1, encode(dim));
    type.message(2, shape);
  }
  return WireMessage().text(1, value.name).message(2, WireMessage().message(1, type));
}

WireMessage encode(const AttributeProto& attribute) {
  using Kind = AttributeProto::Kind;
  WireMessage out;
  out.text(1, attribute.name);
  switch (attribute.kind) {
    case Kind::real: out.real(2, attribute.real); break;
    case Kind::integer: out.integer(3, attribute.integer); break;
    case Kind::text: out.text(4, attribute.text); break;
    case Kind::tensor: out.message(5, encode(*attribute.tensor)); break;
    case Kind::graph: out.message(6, encode(*attribute.graph)); break;
    case Kind::reals: out.reals(7, attribute.reals); break;
    case Kind::integers: out.integers(8, attribute.integers); break;
    case Kind::texts:
      for (const Text text : attribute.texts) out.text(9, text);
      break;
    default: break;  // the exporter makes no others
  }
  return out.integer(20, static_cast<std::int64_t>(attribute.kind)).given_text(21, attribute.reference);
}

WireMessage encode(const NodeProto& node) {
  WireMessage out;
  for (const Text input : node.inputs) out.text(1, input);
  for (const Text output : node.outputs) out.text(2, output);
  out.given_text(3, node.name).text(4, node.op);
  for (const AttributeProto& attribute : node.attributes) out.message(5, encode(attribute));
  return out.given_text(7, node.domain).given_text(8, node.overload);
}

WireMessage encode(const GraphProto& graph) {
  WireMessage out;
  for (const NodeProto& node : graph.nodes) out.message(1, encode(node));
  out.text(2, graph.name);
  for (const TensorProto& tensor : graph.initializers) out.message(5, encode(tensor));
  for (const ValueProto& input : graph.inputs) out.message(11, encode(input));
  for (const ValueProto& output : graph.outputs) out.message(12, encode(output));
  return out;
}

WireMessage encode(const OpsetProto& opset) { return WireMessage().text(1, opset.domain).integer(2, opset.version); }

WireMessage encode(const FunctionProto& function) {
  WireMessage out;
  out.text(1, function.name);
  for (const Text input : function.inputs) out.text(4, input);
  for (const Text output : function.outputs) out.text(5, output);
  for (const Text attribute : function.attributes) out.text(6, attribute);
  for (const NodeProto& node : function.nodes) out.message(7, encode(node));
  for (const OpsetProto& opset : function.opsets) out.message(9, encode(opset));
  out.given_text(10, function.domain);
  for (const AttributeProto& attribute : function.defaults) out.message(11, encode(attribute));
  return out.given_text(13, function.overload);
}

}  // namespace

WireMessage encode(const ModelProto& model) {
  WireMessage out;
  out.integer(1, model.ir_version).text(2, "lathe");
  if (model.graph) out.message(7, encode(*model.graph));
  for (const OpsetProto& opset : model.opsets) out.message(8, encode(opset));
  for (const FunctionProto& function : model.functions) out.message(25, encode(function));
  return out;
}

}  // namespace lathe::onnx
