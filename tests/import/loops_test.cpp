#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/ops/derived_ops.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

using Numbers = std::vector<double>;

/// A graph for an attribute: its nodes, and the names of its inputs and outputs.
Message body(const std::vector<Message>& nodes, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
  Message graph;
  for (const Message& node : nodes) graph.message(1, node);
  for (const std::string& name : inputs) graph.message(11, Message().text(1, name));
  for (const std::string& name : outputs) graph.message(12, Message().text(1, name));
  return graph;
}

HostTensor floats(const std::vector<std::int64_t>& shape, const Numbers& numbers) {
  HostTensor tensor(f32, shape);
  for (std::size_t i = 0; i < numbers.size(); ++i) tensor.set(static_cast<std::int64_t>(i), numbers[i]);
  return tensor;
}

Numbers numbers_of(const HostTensor& tensor) {
  Numbers all;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) all.push_back(tensor.get(i));
  return all;
}

Tensors run(const importing::ImportedGraph& imported, Tensors arguments) {
  arguments.merge(imported.parameters.values());
  return ir::interpret(imported.graph.finish(), arguments);
}

/// h[t] = w h[t-1] + x[t], for a parameter w around the Scan.
ModelWriter recurrence() {
  ModelWriter model;
  model.input("x", {"n", "2"}).input("h", {"2"}).floats("w", {2}, {0.5, 2});
  const Message step = body(
      {node_message("mul", "Mul", {"state", "w"}, {"scaled"}),
       node_message("add", "Add", {"scaled", "row"}, {"next"}), node_message("keep", "Identity", {"next"}, {"kept"})},
      {"state", "row"}, {"next", "kept"});
  model.node("/Scan", "Scan", {"h", "x"}, {"last", "all"},
             {attribute("num_scan_inputs", 1), graph_attribute("body", step)});
  return model.output("last").output("all");
}

/// A Loop of 3 iterations whose body has the given nodes, a state and one output.
ModelWriter counted(const std::vector<Message>& nodes, const std::vector<std::string>& outputs) {
  ModelWriter model;
  model.input("x", {}).integers("trips", {}, {3}).floats("two", {}, {2});
  model.node("/Loop", "Loop", {"trips", "", "x"}, {"last", "all"},
             {graph_attribute("body", body(nodes, {"i", "again", "state"}, outputs))});
  return model;
}

}  // namespace

TEST_CASE("loops: a Scan becomes one loop, and its body reads values around it") {
  const importing::ImportedGraph imported = importing::import_graph(recurrence().write());
  const std::string text = ir::print(ir::dce(imported.graph.finish()));
  INFO(text);
  CHECK(text.find(" loop ") != std::string::npos);
  CHECK(text.find("model.onnx:add") != std::string::npos);
  const Tensors results = run(imported, {{"x", floats({3, 2}, {1, 1, 2, 2, 3, 3})}, {"h", floats({2}, {8, 1})}});
  CHECK(numbers_of(results.at("all")) == Numbers{5, 3, 4.5, 8, 5.25, 19});
  CHECK(numbers_of(results.at("last")) == Numbers{5.25, 19});
}

TEST_CASE("loops: the gradient of a Scan goes through all iterations") {
  const importing::ImportedGraph imported = importing::import_graph(recurrence().write());
  const Tensor loss = imported.outputs.at("last").sum();
  imported.graph.output("dw", grad(loss, imported.graph.parameters())[0]);
  const Tensors results = run(imported, {{"x", floats({2, 2}, {1, 1, 2, 2})}, {"h", floats({2}, {8, 1})}});
  // last = w (w h + x0) + x1, so its derivative is 2 w h + x0.
  CHECK(numbers_of(results.at("dw")) == Numbers{9, 5});
}

TEST_CASE("loops: axes and directions of a Scan") {
  ModelWriter model;
  model.input("x", {"2", "n"}).floats("zero", {2}, {0, 0});
  const Message step =
      body({node_message("", "Add", {"sum", "column"}, {"next"}), node_message("", "Identity", {"next"}, {"kept"})},
           {"sum", "column"}, {"next", "kept"});
  const auto attributes = [&](std::int64_t input, std::int64_t output) {
    return std::vector<Message>{attribute("num_scan_inputs", 1),
                                graph_attribute("body", step),
                                attribute("scan_input_axes", std::vector<std::int64_t>{1}),
                                attribute("scan_input_directions", std::vector{input}),
                                attribute("scan_output_axes", std::vector<std::int64_t>{-1}),
                                attribute("scan_output_directions", std::vector{output})};
  };
  model.node("a", "Scan", {"zero", "x"}, {"", "forward"}, attributes(0, 0)).output("forward");
  model.node("b", "Scan", {"zero", "x"}, {"", "backward"}, attributes(1, 0)).output("backward");
  model.node("c", "Scan", {"zero", "x"}, {"", "aligned"}, attributes(1, 1)).output("aligned");
  const Tensors results = run(importing::import_graph(model.write()), {{"x", floats({2, 3}, {1, 2, 3, 10, 20, 30})}});
  CHECK(numbers_of(results.at("forward")) == Numbers{1, 3, 6, 10, 30, 60});
  CHECK(numbers_of(results.at("backward")) == Numbers{3, 5, 6, 30, 50, 60});
  CHECK(numbers_of(results.at("aligned")) == Numbers{6, 5, 3, 60, 50, 30});
}

TEST_CASE("loops: a Loop counts its iterations, and a constant of the body has its value after it too") {
  ModelWriter model = counted(
      {node_message("", "Cast", {"i"}, {"number"}, {attribute("to", 1)}),
       node_message("", "Mul", {"state", "two"}, {"twice"}), node_message("", "Add", {"twice", "number"}, {"next"}),
       node_message("", "Identity", {"next"}, {"kept"}), node_message("", "Identity", {"again"}, {"more"})},
      {"more", "next", "kept"});
  model.node("/Add", "Add", {"last", "two"}, {"y"}).output("y").output("all");
  const Tensors results = run(importing::import_graph(model.write()), {{"x", floats({}, {1})}});
  CHECK(numbers_of(results.at("all")) == Numbers{2, 5, 12});
  CHECK(results.at("y").item() == 14);
}

TEST_CASE("loops: numbers of iterations that are computed at run time are errors") {
  const Message same = body({}, {"i", "again", "state"}, {"again", "state"});
  ModelWriter late;
  late.input("x", {}).input("trips", {}, 7);
  late.node("/Loop", "Loop", {"trips", "", "x"}, {"y"}, {graph_attribute("body", same)}).output("y");
  CHECK_THAT(import_error(late), Contains("/Loop: Loop: the number of iterations depends on values"));
  ModelWriter endless;
  endless.input("x", {}).node("/Loop", "Loop", {"", "", "x"}, {"y"}, {graph_attribute("body", same)}).output("y");
  CHECK_THAT(import_error(endless), Contains("/Loop: Loop: the condition is computed at run time, and no number of "
                                             "iterations limits the loop"));
}

TEST_CASE("loops: unsupported parts of a body are listed, and its inputs and states are checked") {
  ModelWriter unknown = counted({node_message("inner", "NonZero", {"state"}, {"next"})}, {"again", "next", "next"});
  CHECK_THAT(import_error(unknown), Contains("the op NonZero: inner"));
  ModelWriter inputs;
  inputs.input("x", {"n"})
      .node("/Scan", "Scan", {"x"}, {"y"},
            {attribute("num_scan_inputs", 1), graph_attribute("body", body({}, {"a", "b"}, {"a"}))});
  CHECK_THAT(import_error(inputs.output("y")),
             Contains("/Scan: Scan: body has 2 inputs, and the node gives 1 values"));
  ModelWriter grows =
      counted({node_message("", "Unsqueeze", {"state", "trips1"}, {"next"})}, {"again", "next", "next"});
  grows.integers("trips1", {1}, {0});
  CHECK_THAT(import_error(grows.output("last")), Contains("[loop_carry]") && Contains("model.onnx:/Loop"));
  ModelWriter count;
  count.input("x", {"n"})
      .node("/Scan", "Scan", {"x"}, {"y"},
            {attribute("num_scan_inputs", 2), graph_attribute("body", body({}, {"a"}, {"a"}))});
  CHECK_THAT(import_error(count.output("y")),
             Contains("the attribute num_scan_inputs is 2, and there are 1 operands"));
}

namespace {

std::string recurrent_error(std::string_view op, const std::vector<Message>& attributes) {
  ModelWriter model(22);
  model.input("x", {"n", "b", "3"});
  const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  model.floats("w", {1, gates * 2, 3}, std::vector<float>(static_cast<std::size_t>(gates * 6), 0.1F));
  model.floats("r", {1, gates * 2, 2}, std::vector<float>(static_cast<std::size_t>(gates * 4), 0.1F));
  return import_error(model.node("/rnn", op, {"x", "w", "r"}, {"y"}, attributes).output("y"));
}

/// An attribute with several texts.
Message texts(std::string_view name, const std::vector<std::string>& values) {
  Message message;
  message.text(1, name).integer(20, 8);
  for (const std::string& value : values) message.text(9, value);
  return message;
}

}  // namespace

TEST_CASE("loops: attributes of recurrent layers that are not supported are named") {
  CHECK(recurrent_error("LSTM", {attribute("hidden_size", 2)}) == "no error");
  CHECK_THAT(recurrent_error("LSTM", {attribute("hidden_size", 3)}),
             Contains("/rnn: LSTM: the attribute hidden_size is 3, and R has the size 2  [import_attribute]"));
  CHECK_THAT(recurrent_error("GRU", {text_attribute("direction", "sideways")}),
             Contains("the attribute direction is 'sideways', not forward, reverse or bidirectional"));
  CHECK_THAT(recurrent_error("GRU", {text_attribute("direction", "bidirectional")}),
             Contains("operand 1 has the shape [1, 6, 3], not [2, 6, 3]  [import_operand]"));
  CHECK_THAT(recurrent_error("LSTM", {texts("activations", {"Sigmoid", "Tanh"})}),
             Contains("the attribute activations has 2 functions, not 3"));
  CHECK_THAT(recurrent_error("RNN", {texts("activations", {"Swish"})}),
             Contains("the attribute activations has 'Swish'") && Contains("supported: Relu, Tanh, Sigmoid"));
  CHECK_THAT(recurrent_error("RNN", {texts("activations", {"Affine"})}),
             Contains("the attribute activation_alpha has no number for Affine"));
}

TEST_CASE("loops: an LSTM whose batch is the first dim gives the numbers of one whose steps are") {
  std::vector<float> w(24), r(16);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.1F * static_cast<float>(i % 7) - 0.3F;
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = 0.1F * static_cast<float>(i % 5) - 0.2F;
  ModelWriter model(22);
  model.input("x", {"b", "n", "3"}).floats("w", {1, 8, 3}, w).floats("r", {1, 8, 2}, r);
  const auto order = [](std::vector<std::int64_t> dims) { return attribute("perm", dims); };
  model.node("swap", "Transpose", {"x"}, {"steps"}, {order({1, 0, 2})});
  model.node("a", "LSTM", {"steps", "w", "r"}, {"y0", "", "c0"});
  model.node("b", "LSTM", {"x", "w", "r"}, {"y1", "", "c1"}, {attribute("layout", 1)});
  model.node("y", "Transpose", {"y0"}, {"y2"}, {order({2, 0, 1, 3})}).output("y1").output("y2");
  model.node("c", "Transpose", {"c0"}, {"c2"}, {order({1, 0, 2})}).output("c1").output("c2");
  const Tensors results = run(importing::import_graph(model.write()),
                              {{"x", floats({2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1})}});
  CHECK(results.at("y1").shape() == std::vector<std::int64_t>{2, 3, 1, 2});
  CHECK(numbers_of(results.at("y1")) == numbers_of(results.at("y2")));
  CHECK(numbers_of(results.at("c1")) == numbers_of(results.at("c2")));
}
