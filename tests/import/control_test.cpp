#include <catch2/catch.hpp>
#include <limits>

#include "frontend/grad.h"
#include "frontend/ops/derived_ops.h"
#include "ir/tensor/text/printer.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

/// Branches and loops whose conditions are computed at run time.
namespace {

HostTensor floats(const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  HostTensor tensor(f32, shape);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

std::vector<double> numbers_of(const HostTensor& tensor) { return tensor.values<double>(); }

Message graph_of(const std::vector<Message>& nodes, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs) {
  Message graph;
  for (const Message& node : nodes) graph.message(1, node);
  for (const std::string& input : inputs) graph.message(11, Message().text(1, input));
  for (const std::string& output : outputs) graph.message(12, Message().text(1, output));
  return graph;
}

/// y = sum(x) > 0 ? then : otherwise, whose nodes read x: f32[n, 2], the parameter w: f32[2], and ids i64[2].
ModelWriter selected(const std::vector<Message>& then_nodes, const std::vector<Message>& else_nodes) {
  ModelWriter model;
  model.input("x", {"n", "2"}).input("ids", {"2"}, 7).floats("w", {2}, {3, -2}).floats("zero", {}, {0});
  model.integers("one", {1}, {1}).integers("first", {1}, {0}).integers("axes", {2}, {0, 1});
  model.node("s", "ReduceSum", {"x", "axes"}, {"sum"}, {attribute("keepdims", 0)});
  model.node("g", "Greater", {"sum", "zero"}, {"positive"});
  model.node("/If", "If", {"positive"}, {"y"},
             {graph_attribute("then_branch", graph_of(then_nodes, {}, {"t"})),
              graph_attribute("else_branch", graph_of(else_nodes, {}, {"e"}))});
  return model.output("y");
}

/// A loop over a state f32[]: at most `limit` iterations of next = 2 * state, while next < bound.
ModelWriter doubling(std::int64_t limit, bool stacks) {
  ModelWriter model;
  model.input("x", {}).input("bound", {}).integers("limit", {}, {limit}).floats("two", {}, {2});
  model.node("c", "Less", {"x", "bound"}, {"starts"});
  const Message body = graph_of(
      {node_message("m", "Mul", {"state", "two"}, {"next"}), node_message("l", "Less", {"next", "bound"}, {"more"}),
       node_message("k", "Identity", {"next"}, {"kept"})},
      {"i", "go", "state"},
      stacks ? std::vector<std::string>{"more", "next", "kept"} : std::vector<std::string>{"more", "next"});
  std::vector<std::string> outputs{"last"};
  if (stacks) outputs.emplace_back("all");
  model.node("/Loop", "Loop", {"limit", "starts", "x"}, outputs, {graph_attribute("body", body)});
  return model.output("last");
}

}  // namespace

TEST_CASE("control: an If whose condition is computed at run time selects from the results of both branches") {
  const importing::ImportedGraph imported = importing::import_graph(
      selected({node_message("m", "Mul", {"x", "w"}, {"t"})}, {node_message("n", "Neg", {"x"}, {"e"})}).write());
  CHECK_THAT(ir::print(ir::dce(imported.graph.finish())), Contains(" where "));
  const Tensor w = imported.graph.parameters()[0];
  imported.graph.output("dw", grad(imported.outputs.at("y").sum(), {w})[0]);
  const auto run = [&](const std::vector<double>& x) {
    return run_imported(imported, {{"x", floats({2, 2}, x)}, {"ids", HostTensor(i64, {2})}}, false);
  };
  const Tensors yes = run({1, 2, 3, 4}), no = run({1, -2, -3, -4});
  CHECK(numbers_of(yes.at("y")) == std::vector<double>{3, -4, 9, -8});
  CHECK(numbers_of(yes.at("dw")) == std::vector<double>{4, 6});
  CHECK(numbers_of(no.at("y")) == std::vector<double>{-1, 2, 3, 4});
  CHECK(numbers_of(no.at("dw")) == std::vector<double>{0, 0});
}

TEST_CASE("control: branches of different shapes, and those that may fail at run time, are errors at the node") {
  const std::vector<Message> neg{node_message("n", "Neg", {"x"}, {"e"})};
  CHECK_THAT(import_error(selected({node_message("t", "Transpose", {"x"}, {"t"})}, neg)),
             Contains("model.onnx:/If: If: the condition is computed at run time, and result 0 is f32[2, n] in "
                      "then_branch and f32[n, 2] in else_branch  [import_unsupported]") &&
                 Contains("export the model with a constant condition"));
  CHECK_THAT(import_error(selected({node_message("c", "Cast", {"x"}, {"t"}, {attribute("to", 11)})}, neg)),
             Contains("result 0 is f64[n, 2] in then_branch and f32[n, 2] in else_branch"));
  const std::vector<Message> lookup{node_message("inner", "Gather", {"w", "ids"}, {"row"}),
                                    node_message("a", "Add", {"x", "row"}, {"t"})};
  CHECK_THAT(import_error(selected(lookup, neg)),
             Contains("/If: If: then_branch also runs if the condition is false, and "
                      "gather at model.onnx:inner fails for an index out of range"));
  // Known indices cannot fail at run time.
  const std::vector<Message> known{node_message("inner", "Gather", {"w", "one"}, {"row"}),
                                   node_message("a", "Add", {"x", "row"}, {"t"})};
  CHECK(import_error(selected(known, neg)) == "no error");
  const std::vector<Message> sizes{node_message("a", "MatMul", {"x", "x"}, {"t"})};
  CHECK_THAT(import_error(selected(sizes, neg)), Contains("it has sizes that are checked when it runs"));
}

TEST_CASE("control: a Loop with a limit and a condition of the run keeps its states after the end") {
  const importing::ImportedGraph imported = importing::import_graph(doubling(5, false).write());
  const auto last = [&](double x, double bound) {
    return run_imported(imported, {{"x", floats({}, {x})}, {"bound", floats({}, {bound})}}, false).at("last").item();
  };
  CHECK(last(1, 100) == 32);
  CHECK(last(1, 5) == 8);
  CHECK(last(3, 3) == 3);
  CHECK(last(-1, 0) == -32);
}

TEST_CASE("control: loops of the run without a limit, or with rows for each iteration, are errors at the node") {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  CHECK_THAT(import_error(doubling(none, false)),
             Contains("model.onnx:/Loop: Loop: the condition is computed at run time, and no number of iterations "
                      "limits the loop  [import_unsupported]") &&
                 Contains("give the loop a limit"));
  CHECK_THAT(import_error(doubling(5, true)),
             Contains("the number of rows of result 1 depends on a condition that is computed at run time"));
}

TEST_CASE("control: iterations are counted at import if the condition follows from known states") {
  ModelWriter model;
  model.input("x", {"n"}).integers("limit", {}, {std::numeric_limits<std::int64_t>::max()});
  model.integers("count", {}, {1}).integers("step", {}, {2}).integers("end", {}, {14}).floats("half", {}, {0.5});
  const Message body = graph_of(
      {node_message("a", "Mul", {"k", "step"}, {"next_k"}), node_message("l", "Less", {"next_k", "end"}, {"more"}),
       node_message("m", "Mul", {"state", "half"}, {"next"}), node_message("k", "Identity", {"next"}, {"kept"})},
      {"i", "go", "k", "state"}, {"more", "next_k", "next", "kept"});
  model.node("/Loop", "Loop", {"limit", "", "count", "x"}, {"k_last", "last", "all"},
             {graph_attribute("body", body)});
  const importing::ImportedGraph imported =
      importing::import_graph(model.output("k_last").output("last").output("all").write());
  const Tensors results = run_imported(imported, {{"x", floats({2}, {16, 32})}}, false);
  CHECK(results.at("k_last").get_int(0) == 16);
  CHECK(numbers_of(results.at("last")) == std::vector<double>{1, 2});
  CHECK(numbers_of(results.at("all")) == std::vector<double>{8, 16, 4, 8, 2, 4, 1, 2});
}
