#include <catch2/catch.hpp>
#include <limits>

#include "models/export/onnx/write_model.h"

using namespace lathe;
using namespace lathe::onnx;

namespace {

std::string bytes_of(const WireMessage& message) {
  std::string bytes;
  message.each_part([&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
  CHECK(bytes.size() == message.size());
  return bytes;
}

AttributeProto attribute(Text name, AttributeProto::Kind kind) {
  AttributeProto made;
  made.name = name;
  made.kind = kind;
  return made;
}

TensorProto tensor(Text name, ElementType type, std::vector<std::int64_t> dims) {
  TensorProto made;
  made.name = name;
  made.type = static_cast<std::int64_t>(type);
  made.dims = std::move(dims);
  return made;
}

/// A model with a field of each kind.
ModelProto model_of_everything(std::span<const std::byte> raw) {
  using Kind = AttributeProto::Kind;
  GraphProto inner;
  inner.name = "branch";
  inner.nodes.push_back({"n", "Exp", "", "", {"x"}, {"y"}, {}});
  NodeProto node{"/a/If", "If", "domain", "overload", {"c", "", "x"}, {"r"}, {}};
  auto real = attribute("real", Kind::real), integer = attribute("integer", Kind::integer),
       text = attribute("text", Kind::text), value = attribute("tensor", Kind::tensor),
       graph = attribute("graph", Kind::graph), reals = attribute("reals", Kind::reals),
       integers = attribute("integers", Kind::integers), texts = attribute("texts", Kind::texts),
       empty = attribute("empty", Kind::integers);
  real.real = -0.5F;
  integer.integer = std::numeric_limits<std::int64_t>::min();
  text.text = "add";
  value.tensor = std::make_shared<const TensorProto>(tensor("", ElementType::float32, {}));
  graph.graph = std::make_shared<const GraphProto>(inner);
  reals.reals = {1, 2};
  integers.integers = {-1, 0, 1 << 20};
  texts.texts = {"p", ""};
  node.attributes = {real, integer, text, value, graph, reals, integers, texts, empty};
  GraphProto main;
  main.name = "main";
  main.nodes.push_back(node);
  main.inputs.push_back({"x", 1, std::vector<DimProto>{{3, ""}, {{}, "n + 1"}, {{}, ""}}, ""});
  main.outputs.push_back({"r", 1, std::vector<DimProto>{}, ""});
  main.initializers.push_back(tensor("raw", ElementType::uint8, {static_cast<std::int64_t>(raw.size())}));
  main.initializers.back().raw = raw;
  main.initializers.push_back(tensor("numbers", ElementType::int64, {2}));
  main.initializers.back().integers = {-5, 7};
  main.initializers.push_back(tensor("apart", ElementType::float32, {1}));
  main.initializers.back().is_external = true;
  main.initializers.back().external = {{"location", "model.data"}, {"offset", "4096"}};
  FunctionProto function;
  function.name = "f";
  function.domain = "local";
  function.inputs = {"a"};
  function.outputs = {"b"};
  function.nodes.push_back({"", "Exp", "", "", {"a"}, {"b"}, {}});
  function.opsets.push_back({"", 18});
  ModelProto model;
  model.ir_version = 8;
  model.opsets = {{"", 18}, {"local", 1}};
  model.graph = main;
  model.functions = {function};
  return model;
}

}  // namespace

TEST_CASE("wire: a model is read as it was written") {
  const std::byte raw[] = {std::byte{1}, std::byte{0}, std::byte{255}};
  const std::string written = bytes_of(encode(model_of_everything(raw)));
  const ModelProto model = read_model(std::as_bytes(std::span(written)), "model.onnx");
  CHECK(bytes_of(encode(model)) == written);
  const NodeProto& node = model.graph->nodes.at(0);
  CHECK(node.inputs == std::vector<Text>{"c", "", "x"});
  REQUIRE(node.attributes.size() == 9);
  CHECK(node.attributes[0].real == -0.5F);
  CHECK(node.attributes[1].integer == std::numeric_limits<std::int64_t>::min());
  CHECK(node.attributes[2].text == "add");
  CHECK(node.attributes[4].graph->nodes.at(0).op == "Exp");
  CHECK(node.attributes[6].integers == std::vector<std::int64_t>{-1, 0, 1 << 20});
  CHECK(node.attributes[8].kind == AttributeProto::Kind::integers);
  CHECK(model.graph->inputs.at(0).shape->at(1).name == "n + 1");
  CHECK(model.graph->initializers.at(0).raw->size() == 3);
  CHECK(model.graph->initializers.at(1).integers == std::vector<std::int64_t>{-5, 7});
  CHECK(model.graph->initializers.at(2).external.at(1).second == "4096");
  CHECK(model.functions.at(0).opsets.at(0).version == 18);
}
