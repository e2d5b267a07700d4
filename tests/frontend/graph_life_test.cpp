#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"

/// Lifetimes of DSL objects: a graph after finish() or training_step(), tensors after their Graph.
using namespace lathe;

namespace {

/// A regression: input x [B, 3], parameter w [3], hidden tensor h, scalar loss.
struct Regression {
  Graph g{"regression"};
  Tensor x, w, h, loss;

  Regression() {
    x = g.input("x", f64, {Dim("B"), 3});
    w = g.parameter("w", f64, {3}, Init::ones());
    h = tanh(x * w);
    loss = (h * h).mean();
  }
};

double only_number(const ir::Graph& graph, const std::string& output) {
  Tensors arguments{{"x", HostTensor::from({1, 3}, {0.5, -1, 2}, f64)}};
  for (auto& [name, value] : initial_values(graph, std::vector<Initializer>{{"w", Init::ones()}}, 0))
    arguments.emplace(name, value);
  return ir::interpret(graph, arguments).at(output).get(0);
}

}  // namespace

TEST_CASE("a finished graph is a copy: the Graph can be extended and finished again") {
  Regression r;
  r.g.output("loss", r.loss);
  const ir::Graph first = r.g.finish();
  const std::string text = ir::print(first);
  CHECK(ir::print(r.g.finish()) == text);
  CHECK(r.h.shape() == r.x.shape());
  r.g.output("largest", r.h.max());
  const ir::Graph second = r.g.finish();
  CHECK(ir::print(first) == text);
  CHECK(second.outputs.size() == 2);
  CHECK(only_number(second, "loss") == only_number(first, "loss"));
  CHECK(only_number(second, "largest") == Approx(std::tanh(2)));
}

TEST_CASE("a training step does not change its graph, which can be used for evaluation and another step") {
  for (const DType precision : {f32, bf16}) {
    Regression r;
    const Tensor loss = r.loss.to(f32);
    const std::string before = ir::print(r.g.ir());
    const auto step = [&] { return training_step(r.g, loss, AdamW{.lr = 0.1}, {.precision = precision}); };
    const ir::Graph first = step();
    ir::verify(first);
    CHECK(first.find_argument("optimizer.m.w").valid());
    CHECK(ir::print(r.g.ir()) == before);
    CHECK(ir::print(step()) == ir::print(first));
    const ir::Graph other = training_step(r.g, r.loss, SGD{.lr = 0.1, .momentum = 0.9});
    CHECK(other.find_argument("optimizer.momentum.w").valid());
    r.g.output("h", r.h.softmax(-1));
    const ir::Graph evaluation = r.g.finish();
    CHECK(evaluation.updates.empty());
    CHECK(evaluation.outputs.size() == 1);
    CHECK(only_number(evaluation, "h") > 0);
  }
}

TEST_CASE("a builder appends to an existing graph") {
  Regression r;
  const Tensor loss = dropout(r.h, r.g.random_state(), 0.5).sum();
  ir::Graph copy = r.g.finish();
  ir::GraphBuilder builder(std::move(copy));
  CHECK(builder.next_stream() == 1);  // the dropout has stream 0
  const int nodes = builder.graph().size();
  const ir::Value h(builder, r.h.value().id());
  const ir::Value again = builder.add(*h.node().op, {ir::Value(builder, h.node().operands[0])});
  CHECK(again.id() == h.id());
  CHECK(builder.graph().size() == nodes);
}

TEST_CASE("tensors outlive their Graph, and follow it when it is moved") {
  std::optional<Regression> gone(std::in_place);
  const Tensor h = gone->h;
  gone.reset();
  CHECK(h.softmax(-1).shape().to_string() == "[B, 3]");
  CHECK(grad(h.sum(), {h})[0].dtype() == f64);

  Regression r;
  const auto scope = r.g.scope("inner");
  Graph moved = std::move(r.g);
  moved.parameter("p", f64, {2});
  moved.output("loss", r.loss);
  CHECK(moved.ir().find_argument("inner.p").valid());
  CHECK(only_number(moved.finish(), "loss") > 0);
  r.g = Graph("fresh");
  CHECK(r.g.finish().name == "fresh");

  Tensor from = r.h;
  const Tensor to = std::move(from);
  CHECK(from.shape() == to.shape());
  Tensor empty;
  CHECK(empty.is_empty());
  empty = to;
  CHECK_FALSE(empty.is_empty());
}

TEST_CASE("a scope may outlive its Graph") {
  std::optional<Graph> g(std::in_place, "short");
  {
    const auto scope = g->scope("a");
    g.reset();
  }
  CHECK_FALSE(g);
}
