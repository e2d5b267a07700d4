#include "models/export/onnx/model_builder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ir/support/error.h"

namespace lathe::onnx {

ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ElementType::float32;
    case DType::f64: return ElementType::float64;
    case DType::f16: return ElementType::float16;
    case DType::bf16: return ElementType::bfloat16;
    case DType::i64: return ElementType::int64;
    case DType::i32: return ElementType::int32;
    case DType::i8: return ElementType::int8;
    case DType::u8: return ElementType::uint8;
    case DType::boolean: return ElementType::boolean;
    case DType::c64: return ElementType::complex64;
    case DType::c128: return ElementType::complex128;
  }
  return ElementType::undefined;
}

namespace {

AttributeProto attribute(Text name, AttributeProto::Kind kind) {
  AttributeProto made;
  made.name = name;
  made.kind = kind;
  return made;
}

TensorProto tensor_of(const HostTensor& numbers) {
  TensorProto tensor;
  tensor.dims = numbers.shape();
  tensor.type = static_cast<std::int64_t>(element_type_of(numbers.dtype()));
  return tensor;
}

}  // namespace

AttributeProto integer_attribute(Text name, std::int64_t value) {
  AttributeProto made = attribute(name, AttributeProto::Kind::integer);
  made.integer = value;
  return made;
}
AttributeProto integers_attribute(Text name, std::vector<std::int64_t> values) {
  AttributeProto made = attribute(name, AttributeProto::Kind::integers);
  made.integers = std::move(values);
  return made;
}
AttributeProto real_attribute(Text name, double value) {
  AttributeProto made = attribute(name, AttributeProto::Kind::real);
  made.real = static_cast<float>(value);
  return made;
}
AttributeProto text_attribute(Text name, Text value) {
  AttributeProto made = attribute(name, AttributeProto::Kind::text);
  made.text = value;
  return made;
}
AttributeProto graph_attribute(Text name, GraphProto value) {
  AttributeProto made = attribute(name, AttributeProto::Kind::graph);
  made.graph = std::make_shared<const GraphProto>(std::move(value));
  return made;
}

Text ModelBuilder::keep(std::string text) { return texts_.emplace_back(std::move(text)); }

bool ModelBuilder::reserve(std::string_view name) { return values_.emplace(name).second; }

Text ModelBuilder::free_name(std::string_view wish) {
  std::string name(wish);
  while (!reserve(name)) name = std::string(wish) + "_" + std::to_string(++value_counts_[std::string(wish)]);
  return keep(std::move(name));
}

void ModelBuilder::set_module(std::string_view path) {
  module_.clear();
  if (path.empty()) return;
  module_ = "/" + std::string(path);
  for (char& c : module_)
    if (c == '.') c = '/';
}

Text ModelBuilder::node_name(Text op) {
  const std::string wish = module_ + "/" + std::string(op);
  const int used = node_counts_[wish]++;
  return keep(used == 0 ? wish : wish + "_" + std::to_string(used));
}

Text ModelBuilder::add(Text op, std::vector<Text> inputs, Attributes attributes, std::size_t result) {
  NodeProto node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  std::string key = key_of(node) + std::to_string(result);
  for (std::size_t i = 0; i <= level_; ++i)
    if (const auto found = levels_[i].known.find(key); found != levels_[i].known.end()) return found->second;
  const std::vector<Text> results = add_new(op, std::move(node.inputs), std::move(node.attributes), result + 1);
  Level& level = levels_[level_];
  level.last_key = std::move(key);
  return level.known[level.last_key] = results.back();
}

std::vector<Text> ModelBuilder::add_new(Text op, std::vector<Text> inputs, Attributes attributes,
                                        std::size_t results) {
  NodeProto node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.name = node_name(op);
  // Value names are short: the node has the path.
  for (std::size_t i = 0; i < results; ++i) node.outputs.push_back(free_name(op));
  levels_[level_].last_key.clear();
  mutable_nodes().push_back(std::move(node));
  return nodes().back().outputs;
}

void ModelBuilder::rename(Text result, Text name) {
  std::vector<NodeProto>& nodes = mutable_nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const auto found = std::ranges::find(node->outputs, result);
    if (found == node->outputs.end()) continue;
    *found = name;
    Level& level = levels_[level_];
    if (node == nodes.rbegin() && !level.last_key.empty()) level.known[level.last_key] = name;
    return;
  }
  LATHE_ASSERT(false);
}

std::vector<NodeProto> ModelBuilder::close_body() {
  LATHE_ASSERT(level_ > 0 && level_ == levels_.size() - 1);
  std::vector<NodeProto> nodes = std::move(levels_.back().nodes);
  levels_.pop_back();
  --level_;
  return nodes;
}

ValueProto ModelBuilder::described(std::string_view name, const ir::TensorType& type) {
  ValueProto value;
  value.name = keep(std::string(name));
  value.type = static_cast<std::int64_t>(element_type_of(type.dtype));
  value.shape.emplace();
  for (const Dim& size : type.shape) {
    DimProto dim;
    dim.value = size.value();
    if (!dim.value) dim.name = keep(size.unnamed().to_string());
    value.shape->push_back(dim);
  }
  return value;
}

std::string ModelBuilder::key_of(const NodeProto& node) {
  std::string key(node.op);
  const auto add = [&](auto part) { key += fmt::format("|{}", part); };
  for (const Text input : node.inputs) add(input);
  for (const AttributeProto& attribute : node.attributes) {
    add(attribute.name);
    add(attribute.integer);
    add(attribute.real);
    add(attribute.text);
    key += fmt::format("|{}", fmt::join(attribute.integers, ","));
    // Constants are shared by their values: see constant().
    add(static_cast<const void*>(attribute.tensor.get()));
  }
  return key;
}

void ModelBuilder::add_named(Text op, std::vector<Text> inputs, Text result) {
  NodeProto node;
  node.name = node_name(op);
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = {result};
  levels_[level_].last_key.clear();
  mutable_nodes().push_back(std::move(node));
}

Text ModelBuilder::constant(const HostTensor& numbers) {
  std::string bytes(reinterpret_cast<const char*>(numbers.data()), numbers.bytes());
  const Around around(*this);
  const auto [found, is_new] = constants_.try_emplace({numbers.dtype(), numbers.shape(), std::move(bytes)});
  if (!is_new) return found->second;
  TensorProto tensor = tensor_of(numbers);
  tensor.raw = std::as_bytes(std::span(std::get<std::string>(found->first)));
  AttributeProto value = attribute("value", AttributeProto::Kind::tensor);
  value.tensor = std::make_shared<const TensorProto>(std::move(tensor));
  return found->second = add("Constant", {}, {std::move(value)});
}

Text ModelBuilder::integers(const std::vector<std::int64_t>& values) {
  return constant(HostTensor::of({static_cast<std::int64_t>(values.size())}, values));
}

Text ModelBuilder::scalar(const Number& value, DType dtype) {
  NumberList list;
  list.push_back(value.rounded_to(dtype));
  return constant(HostTensor::from_numbers({}, list, dtype));
}

void ModelBuilder::initializer(Text name, const HostTensor& tensor) {
  TensorProto proto = tensor_of(tensor);
  proto.name = name;
  proto.raw = std::as_bytes(std::span(tensor.data(), tensor.bytes()));
  graph_.initializers.push_back(std::move(proto));
}

}  // namespace lathe::onnx
