#include <catch2/catch.hpp>
#include <limits>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;

namespace {

std::string text_of(const ModelWriter& model, const importing::ImportOptions& options = {}) {
  return ir::print(importing::import_graph(model.write(), options).graph.finish());
}

/// Returns the text with single spaces in its columns.
std::string without_columns(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (c != ' ' || result.empty() || result.back() != ' ') result += c;
  return result;
}

}  // namespace

TEST_CASE("text: a chain of Shape, Gather, Concat and Reshape leaves one reshape to named dims") {
  ModelWriter model;
  model.input("x", {"batch", "length", "6"}).integers("zero", {}, {0}).integers("one", {}, {1});
  model.integers("axes", {1}, {0}).integers("heads", {1}, {2}).integers("size", {1}, {3});
  model.node("/Shape", "Shape", {"x"}, {"shape"});
  model.node("/Gather", "Gather", {"shape", "zero"}, {"b"}).node("/Gather_1", "Gather", {"shape", "one"}, {"t"});
  model.node("/Unsqueeze", "Unsqueeze", {"b", "axes"}, {"b1"})
      .node("/Unsqueeze_1", "Unsqueeze", {"t", "axes"}, {"t1"});
  model.node("/Concat", "Concat", {"b1", "t1", "heads", "size"}, {"sizes"}, {attribute("axis", 0)});
  model.node("/layers.0/attn/Reshape", "Reshape", {"x", "sizes"}, {"y"}).output("y");
  CHECK(without_columns(text_of(model)) ==
        "graph @model(\n"
        " input %x: f32[batch, length, 6] loc(\"model.onnx:x\")\n"
        ") {\n"
        " %1 = reshape %x {shape=[batch, length, 2, 3]} : f32[batch, length, 2, 3] "
        "loc(\"model.onnx:/layers.0/attn/Reshape\" in \"layers.0.attn\")\n"
        " output \"y\" %1\n"
        "}\n");
}

TEST_CASE("text: an imported graph parses to itself") {
  ModelWriter model;
  model.input("x", {"n", "4"}).floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  model.node("/fc/MatMul", "MatMul", {"x", "w"}, {"y"}).node("", "Relu", {"y"}, {"z"}).output("z");
  const std::string text = text_of(model);
  CHECK(text.find("loc(\"model.onnx:Relu of z\")") != std::string::npos);
  CHECK(text.find("parameter %w: f32[4, 2]") != std::string::npos);
  CHECK(ir::print(ir::parse_graph(text)) == text);
}

TEST_CASE("text: a norm and a GELU that are written out become ops") {
  ModelWriter model;
  model.input("x", {"n", "4"}).floats("w", {4}, {1, 2, 3, 4}).floats("two", {}, {2}).floats("eps", {}, {1e-5F});
  model.floats("one", {}, {1})
      .floats("half", {}, {0.5})
      .floats("root", {}, {1.41421354F})
      .integers("last", {1}, {-1});
  model.node("pow", "Pow", {"x", "two"}, {"square"}).node("mean", "ReduceMean", {"square", "last"}, {"mean"});
  model.node("add", "Add", {"mean", "eps"}, {"sum"}).node("sqrt", "Sqrt", {"sum"}, {"norm"});
  model.node("div", "Div", {"x", "norm"}, {"scaled"}).node("mul", "Mul", {"w", "scaled"}, {"h"});
  model.node("div2", "Div", {"h", "root"}, {"z"})
      .node("erf", "Erf", {"z"}, {"e"})
      .node("add1", "Add", {"e", "one"}, {"g"});
  model.node("mul1", "Mul", {"h", "g"}, {"p"}).node("mul2", "Mul", {"p", "half"}, {"y"}).output("y");
  const ir::Graph graph = ir::dce(importing::import_graph(model.write()).graph.finish());
  const std::string text = without_columns(ir::print(graph));
  INFO(text);
  CHECK(text.find("{\n %1 = rms_norm %x, %w : f32[n, 4] loc(\"model.onnx:mul\")\n"
                  " %2 = gelu %1 : f32[n, 4] loc(\"model.onnx:mul2\")\n output \"y\" %2\n}") != std::string::npos);
}

TEST_CASE("text: sizes of inputs are polynomials of the names in the file") {
  ModelWriter model;
  model.input("past", {"batch", "past_length"}).input("ids", {"batch", "length"});
  model.input("mask", {"batch", "past_length + length"}).input("odd", {"floor(n/2)", ""}).output("y");
  model.node("join", "Concat", {"past", "ids"}, {"y"}, {attribute("axis", 1)});
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  const auto shape = [&](const char* name) {
    return imported.graph.ir()[imported.graph.ir().find_argument(name)].type.shape.to_string();
  };
  CHECK(shape("mask") == "[batch, length + past_length]");
  CHECK(shape("odd") == "[floor_n_2_, odd_1]");
  CHECK(imported.outputs.at("y").shape().to_string() == "[batch, length + past_length]");
}

TEST_CASE("text: an input that is fixed at import becomes a constant from which sizes follow") {
  ModelWriter model;
  model.input("x", {"n", "6"})
      .input("shape", {"2"}, 7)
      .node("/Reshape", "Reshape", {"x", "shape"}, {"y"})
      .output("y");
  HostTensor shape(i64, {2});
  shape.set_int(0, 3);
  shape.set_int(1, -1);
  const std::string text = text_of(model, {.inputs = {{"shape", shape}}});
  CHECK(text.find("input %shape") == std::string::npos);
  CHECK(text.find("[3, -1]") != std::string::npos);
}

TEST_CASE("text: a constant condition leaves the nodes of one branch") {
  ModelWriter model;
  const auto branch = [](const char* op) {
    return Message().message(1, node_message("inner", op, {"x"}, {"r"})).message(12, Message().text(1, "r"));
  };
  model.input("x", {"n"}).initializer(Message().integer(2, 9).text(8, "use_cache").integer(5, 0));
  model.node("/If", "If", {"use_cache"}, {"y"},
             {graph_attribute("then_branch", branch("Exp")), graph_attribute("else_branch", branch("Tanh"))});
  model.output("y");
  const std::string text = text_of(model);
  CHECK(text.find("tanh %x") != std::string::npos);
  CHECK(text.find("exp") == std::string::npos);
}

TEST_CASE("text: the nodes of a function have the call in their locations") {
  ModelWriter model;
  model.input("x", {"n"}).import("local", 1);
  model.function(Message()
                     .text(1, "Twice")
                     .text(4, "a")
                     .text(5, "b")
                     .message(7, node_message("sum", "Add", {"a", "a"}, {"b"}))
                     .message(9, Message().integer(2, 18))
                     .text(10, "local"));
  model.node("call", "Twice", {"x"}, {"y"}, {}, "local").output("y");
  CHECK(without_columns(text_of(model)).find("add %x, %x : f32[n] loc(\"model.onnx:call/sum\")") !=
        std::string::npos);
}

TEST_CASE("text: single numbers are parameters if their names have a module path") {
  ModelWriter model;
  model.input("x", {"n"}).floats("clip.logit_scale", {}, {2}).floats("scalar_tensor_default", {}, {3});
  model.node("", "Mul", {"x", "clip.logit_scale"}, {"y"}).node("", "Mul", {"y", "scalar_tensor_default"}, {"z"});
  const std::string text = text_of(model.output("z"));
  CHECK(text.find("parameter %clip.logit_scale: f32[]") != std::string::npos);
  CHECK(text.find("values=[3.0]") != std::string::npos);
}

TEST_CASE("text: a slice from -2^63 on starts at the first element, and a Concat of one operand is the operand") {
  ModelWriter model;
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  model.input("x", {"n", "6"}).integers("first", {1}, {least}).integers("end", {1}, {-2}).integers("axis", {1}, {1});
  model.node("/Slice", "Slice", {"x", "first", "end", "axis"}, {"part"});
  model.node("/Concat", "Concat", {"part"}, {"y"}, {attribute("axis", -1)}).output("y");
  model.node("/Shape", "Shape", {"x"}, {"sizes"}).node("/Head", "Slice", {"sizes", "first", "end"}, {"none"});
  const std::string text = without_columns(text_of(model));
  INFO(text);
  CHECK(text.find("slice %x {dim=1, start=0, stop=4} : f32[n, 4]") != std::string::npos);
  CHECK(text.find("concat") == std::string::npos);
}
