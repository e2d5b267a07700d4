#include "models/import/loss/attached_loss.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "frontend/initial_values.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/parser.h"
#include "models/import/loss/training_graphs.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

/// A graph whose output "y" is its input "x".
ModelWriter identity(const std::vector<std::string>& shape) {
  ModelWriter model;
  model.input("x", shape).node("copy", "Identity", {"x"}, {"y"}).output("y");
  return model;
}

double loss_of(const ModelWriter& model, std::string_view loss, Tensors arguments) {
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  imported.graph.output("loss", importing::attach_loss(imported, importing::parse_loss(loss)));
  return ir::interpret(imported.graph.finish(), arguments).at("loss").get(0);
}

/// -log softmax(row)[target].
double surprise(const std::vector<double>& row, std::size_t target) {
  double sum = 0;
  for (const double x : row) sum += std::exp(x);
  return std::log(sum) - row[target];
}

std::string error_of(const ModelWriter& model, std::string_view loss) {
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  try {
    (void)importing::attach_loss(imported, importing::parse_loss(loss));
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("attached loss: cross entropy with a new input, whose targets of -100 are ignored") {
  const HostTensor x = HostTensor::from_numbers({3, 2}, {1, 2, 0.5, -1, 3, 3}, f32);
  const double loss = loss_of(identity({"n", "2"}), "cross_entropy:y,labels",
                              {{"x", x}, {"labels", HostTensor::from_numbers({3}, {0, -100, 1}, i64)}});
  CHECK(loss == Approx((surprise({1, 2}, 0) + surprise({3, 3}, 1)) / 2));
}

TEST_CASE("attached loss: the next token of an input of the graph, for which the last logits do not matter") {
  ModelWriter model;
  model.input("x", {"b", "t", "2"}).input("ids", {"b", "t"}, 7);
  model.node("copy", "Identity", {"x"}, {"y"}).output("y").node("copy2", "Identity", {"ids"}, {"z"}).output("z");
  const double loss = loss_of(model, "next_token:y,ids",
                              {{"x", HostTensor::from_numbers({1, 3, 2}, {1, 2, 0.5, -1, std::nan(""), 7}, f32)},
                               {"ids", HostTensor::from_numbers({1, 3}, {1, 0, 1}, i64)}});
  CHECK(loss == Approx((surprise({1, 2}, 0) + surprise({0.5, -1}, 1)) / 2));
}

TEST_CASE("attached loss: squares and binary cross entropy have targets of the output's shape") {
  const HostTensor x = HostTensor::from_numbers({2}, {1, -2}, f32),
                   target = HostTensor::from_numbers({2}, {0, 1}, f32);
  CHECK(loss_of(identity({"2"}), "mse:y,t", {{"x", x}, {"t", target}}) == Approx(5));
  CHECK(loss_of(identity({"2"}), "binary_cross_entropy:y,t", {{"x", x}, {"t", target}}) ==
        Approx((std::log1p(std::exp(1)) + std::log1p(std::exp(2))) / 2));
}

TEST_CASE("attached loss: errors name the loss, the outputs and what is needed") {
  for (const char* text : {"", "mse", "mse:", "mse:y", "mse:y,", "mse:,t", "mse:y,t,u", "mse,y:t"})
    CHECK_THAT(error_of(identity({"2"}), text),
               Contains("is not a loss  [import_loss]") &&
                   Contains("KIND:OUTPUT,TARGET, such as cross_entropy:logits,labels"));
  CHECK_THAT(error_of(identity({"2"}), "l1:y,t"), Contains("there is no loss 'l1'  [import_loss]"));
  CHECK_THAT(error_of(identity({"2"}), "mse:z,t"),
             Contains("the graph has no output 'z' for the loss  [import_loss]") && Contains("its outputs are y"));
  CHECK_THAT(error_of(identity({"2"}), "next_token:y,t"),
             Contains("the output 'y' is f32[2], but next_token needs logits [B, T, classes]  [import_loss]"));
  CHECK_THAT(error_of(identity({}), "cross_entropy:y,t"), Contains("f32[], but cross_entropy needs logits"));
  CHECK(error_of(identity({"2"}), "mse:y,x") == "no error");
  CHECK(error_of(identity({"2", "3"}), "cross_entropy:y,x") == "no error");  // probabilities
}

TEST_CASE("attached loss: an output of one number is the loss, also if its name is 'loss'") {
  ModelWriter model;
  model.input("x", {"n"}).node("sum", "ReduceSum", {"x"}, {"loss"}, {attribute("keepdims", 0)}).output("loss");
  const Tensors x{{"x", HostTensor::from_numbers({3}, {1, 2, 4}, f32)}};
  const importing::AttachedLoss loss = importing::parse_loss("output:loss");
  const ir::Graph graph = importing::loss_graph(importing::import_graph(model.write()), loss);
  REQUIRE(graph.outputs.size() == 1);
  CHECK(ir::interpret(graph, x).at("loss").get(0) == 7);

  CHECK_THAT(error_of(identity({"2"}), "output:y"),
             Contains("the output 'y' is f32[2], but output needs a number  [import_loss]"));
  for (const char* text : {"output", "output:", "output:y,", "output:y,t"})
    CHECK_THAT(error_of(identity({}), text), Contains("is not a loss  [import_loss]") && Contains("output:OUTPUT"));
}

TEST_CASE("attached loss: a loss named 'loss' in place of an output of this name") {
  ModelWriter model;
  model.input("x", {"n"}).node("copy", "Identity", {"x"}, {"loss"}).output("loss");
  const ir::Graph graph =
      importing::loss_graph(importing::import_graph(model.write()), importing::parse_loss("mse:loss,t"));
  CHECK(ir::interpret(graph, {{"x", HostTensor::from_numbers({2}, {1, -2}, f32)},
                              {"t", HostTensor::from_numbers({2}, {0, 1}, f32)}})
            .at("loss")
            .get(0) == 5);
}

TEST_CASE("attached loss: a graph of Lathe gets a loss, and its parameters are no targets") {
  const auto read = [] {
    return importing::as_imported(
        ir::parse_graph("graph @g(input %x: f32[n, 2], parameter %w: f32[2]) {\n"
                        "  %0 = mul %x, %w : f32[n, 2]\n"
                        "  output \"y\" %0\n}\n"));
  };
  const importing::ImportedGraph imported = read();
  const importing::TrainingGraphs graphs =
      importing::training_graphs(imported, importing::parse_loss("mse:y,t"), SGD{.lr = 0.5}, {});
  const Tensors values{{"x", HostTensor::from_numbers({1, 2}, {1, 2}, f32)},
                       {"w", HostTensor::from_numbers({2}, {3, -1}, f32)},
                       {"t", HostTensor::from_numbers({1, 2}, {1, 0}, f32)}};
  CHECK(ir::interpret(graphs.forward, values).at("loss").get(0) == 4);  // (2^2 + 2^2) / 2
  Tensors start = initial_states(graphs.step, 0);
  for (const auto& [name, value] : values) start.insert_or_assign(name, value);
  CHECK(ir::interpret(graphs.step, start)
            .at("w")
            .same_bits(HostTensor::from_numbers({2}, {2, 1}, f32)));  // w - lr * (2, -4)

  CHECK_THROWS_WITH(importing::attach_loss(read(), importing::parse_loss("mse:y,w")),
                    Contains("the target 'w' of the loss is a parameter of the graph  [import_loss]"));
}
