#include <fmt/core.h>

#include <initializer_list>

#include "models/import/onnx/onnx_model.h"
#include "models/import/onnx/wire.h"

namespace lathe::onnx {

namespace {

/// Skips a field if it is in the list; any other field is an error.
void skip(const WireReader& in, const WireField& field, std::initializer_list<std::uint32_t> without_effect) {
  for (const std::uint32_t number : without_effect)
    if (field.number == number) return;
  in.unknown(field);
}

std::pair<Text, Text> read_entry(WireReader in) {
  std::pair<Text, Text> entry;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: entry.first = in.text(field); break;
      case 2: entry.second = in.text(field); break;
      default: in.unknown(field);
    }
  return entry;
}

/// The elements of int32_data and int64_data share one list. Fields 6 and 11 are texts and unsigned 64-bit numbers,
/// of types that Lathe does not have: the type of the tensor is the error.
TensorProto read_tensor_message(WireReader in) {
  TensorProto tensor;
  tensor.offset = in.start();
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: in.append_integers(field, tensor.dims); break;
      case 2: tensor.type = in.integer(field); break;
      case 4: in.append_reals(field, tensor.floats); break;
      case 5:
      case 7: in.append_integers(field, tensor.integers); break;
      case 8: tensor.name = in.text(field); break;
      case 9: in.text(field), tensor.raw = field.bytes; break;
      case 10: in.append_doubles(field, tensor.doubles); break;
      case 13: tensor.external.push_back(read_entry(in.nested(field, "StringStringEntryProto"))); break;
      case 14: tensor.is_external = in.integer(field) != 0; break;
      default: skip(in, field, {6, 11, 12, 16});
    }
  return tensor;
}

DimProto read_dim(WireReader in) {
  DimProto dim;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: dim.value = in.integer(field); break;
      case 2: dim.name = in.text(field); break;
      default: skip(in, field, {3});
    }
  return dim;
}

std::vector<DimProto> read_shape(WireReader in) {
  std::vector<DimProto> dims;
  for (WireField field; in.next(field);) {
    if (field.number != 1) in.unknown(field);
    dims.push_back(read_dim(in.nested(field, "Dimension")));
  }
  return dims;
}

void read_tensor_type(WireReader in, ValueProto& value) {
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: value.type = in.integer(field); break;
      case 2: value.shape = read_shape(in.nested(field, "TensorShapeProto")); break;
      default: in.unknown(field);
    }
}

void read_type(WireReader in, ValueProto& value) {
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: read_tensor_type(in.nested(field, "TypeProto.Tensor"), value); break;
      case 4: value.other_kind = "sequence"; break;
      case 5: value.other_kind = "map"; break;
      case 7: value.other_kind = "opaque value"; break;
      case 8: value.other_kind = "sparse tensor"; break;
      case 9: value.other_kind = "optional"; break;
      default: skip(in, field, {6});
    }
}

ValueProto read_value(WireReader in) {
  ValueProto value;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: value.name = in.text(field); break;
      case 2: read_type(in.nested(field, "TypeProto"), value); break;
      default: skip(in, field, {3, 4});
    }
  if (value.name.empty()) in.fail(in.start(), "a value has no name");
  return value;
}

GraphProto read_graph(WireReader in);

/// Before version 8 of the format, the kind of an attribute followed from its fields.
AttributeProto::Kind kind_of_field(std::uint32_t number) {
  using Kind = AttributeProto::Kind;
  switch (number) {
    case 2: return Kind::real;
    case 3: return Kind::integer;
    case 4: return Kind::text;
    case 5: return Kind::tensor;
    case 6: return Kind::graph;
    case 7: return Kind::reals;
    case 8: return Kind::integers;
    case 9: return Kind::texts;
    case 10: return Kind::tensors;
    case 11: return Kind::graphs;
    case 14: return Kind::type;
    case 15: return Kind::types;
    case 22: return Kind::sparse_tensor;
    case 23: return Kind::sparse_tensors;
    default: return Kind::undefined;
  }
}

void read_attribute_value(const WireReader& in, const WireField& field, AttributeProto& attribute) {
  switch (field.number) {
    case 2: attribute.real = in.real(field); break;
    case 3: attribute.integer = in.integer(field); break;
    case 4: attribute.text = in.text(field); break;
    case 5:
      attribute.tensor = std::make_shared<const TensorProto>(read_tensor_message(in.nested(field, "TensorProto")));
      break;
    case 6: attribute.graph = std::make_shared<const GraphProto>(read_graph(in.nested(field, "GraphProto"))); break;
    case 7: in.append_reals(field, attribute.reals); break;
    case 8: in.append_integers(field, attribute.integers); break;
    case 9: attribute.texts.push_back(in.text(field)); break;
    default: break;  // kinds that no supported op has; the attribute is refused by its name
  }
}

AttributeProto read_attribute(WireReader in) {
  AttributeProto attribute;
  auto implied = AttributeProto::Kind::undefined;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: attribute.name = in.text(field); break;
      case 20: attribute.kind = static_cast<AttributeProto::Kind>(in.integer(field)); break;
      case 21: attribute.reference = in.text(field); break;
      default:
        if (const auto kind = kind_of_field(field.number); kind != AttributeProto::Kind::undefined) {
          implied = kind;
          read_attribute_value(in, field, attribute);
        } else {
          skip(in, field, {13});
        }
    }
  if (attribute.name.empty()) in.fail(in.start(), "an attribute has no name");
  if (attribute.kind == AttributeProto::Kind::undefined) attribute.kind = implied;
  return attribute;
}

NodeProto read_node(WireReader in) {
  NodeProto node;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: node.inputs.push_back(in.text(field)); break;
      case 2: node.outputs.push_back(in.text(field)); break;
      case 3: node.name = in.text(field); break;
      case 4: node.op = in.text(field); break;
      case 5: node.attributes.push_back(read_attribute(in.nested(field, "AttributeProto"))); break;
      case 7: node.domain = in.text(field); break;
      case 8: node.overload = in.text(field); break;
      default: skip(in, field, {6, 9, 10});
    }
  if (node.op.empty()) in.fail(in.start(), "a node has no op");
  return node;
}

GraphProto read_graph(WireReader in) {
  GraphProto graph;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: graph.nodes.push_back(read_node(in.nested(field, "NodeProto"))); break;
      case 2: graph.name = in.text(field); break;
      case 5:
        graph.initializers.push_back(read_tensor_message(in.nested(field, "TensorProto")));
        if (graph.initializers.back().name.empty()) in.fail(field.offset, "an initializer has no name");
        break;
      case 11: graph.inputs.push_back(read_value(in.nested(field, "ValueInfoProto"))); break;
      case 12: graph.outputs.push_back(read_value(in.nested(field, "ValueInfoProto"))); break;
      case 15: in.fail(field.offset, "sparse initializers are not supported");
      default: skip(in, field, {10, 13, 14, 16});
    }
  return graph;
}

OpsetProto read_opset(WireReader in) {
  OpsetProto opset;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: opset.domain = in.text(field); break;
      case 2: opset.version = in.integer(field); break;
      default: in.unknown(field);
    }
  return opset;
}

FunctionProto read_function(WireReader in) {
  FunctionProto function;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: function.name = in.text(field); break;
      case 4: function.inputs.push_back(in.text(field)); break;
      case 5: function.outputs.push_back(in.text(field)); break;
      case 6: function.attributes.push_back(in.text(field)); break;
      case 7: function.nodes.push_back(read_node(in.nested(field, "NodeProto"))); break;
      case 9: function.opsets.push_back(read_opset(in.nested(field, "OperatorSetIdProto"))); break;
      case 10: function.domain = in.text(field); break;
      case 11: function.defaults.push_back(read_attribute(in.nested(field, "AttributeProto"))); break;
      case 13: function.overload = in.text(field); break;
      default: skip(in, field, {8, 12, 14});
    }
  if (function.name.empty()) in.fail(in.start(), "a function has no name");
  return function;
}

}  // namespace

ModelProto read_model(std::span<const std::byte> file, std::string_view file_name) {
  WireReader in(file, file_name, "ModelProto");
  ModelProto model;
  for (WireField field; in.next(field);) switch (field.number) {
      case 1: model.ir_version = in.integer(field); break;
      case 7:
        if (model.graph) in.fail(field.offset, "the model has two graphs");
        model.graph = read_graph(in.nested(field, "GraphProto"));
        break;
      case 8: model.opsets.push_back(read_opset(in.nested(field, "OperatorSetIdProto"))); break;
      case 25: model.functions.push_back(read_function(in.nested(field, "FunctionProto"))); break;
      default: skip(in, field, {2, 3, 4, 5, 6, 14, 20, 26});
    }
  if (!model.graph) in.fail(0, "the model has no graph");
  return model;
}

TensorProto read_tensor(std::span<const std::byte> file, std::string_view file_name) {
  return read_tensor_message(WireReader(file, file_name, "TensorProto"));
}

}  // namespace lathe::onnx
