#include "frontend/nn/substitution.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/texts/error_label.h"

/// Modules that read other tensors in place of their parameters.
using namespace lathe;
using Catch::Contains;

namespace {

struct Net : nn::Module {
  Net() : Module("Net"), up(*this, "up", 2, 3), down(*this, "down", 3, 1) {}
  Tensor loss(const Tensor& x) const { return square(down(tanh(up(x)))).mean(); }
  nn::Linear up, down;
};

/// Returns the loss after one step of gradient descent on another batch, and its gradients by "up.weight" etc.
ir::Graph meta_step(const Net& net) {
  Graph g{"meta"};
  const Tensor inner = g.input("inner", f32, {4, 2}), outer = g.input("outer", f32, {5, 2});
  const Tensor first = net.loss(inner);
  std::vector<Tensor> weights;
  for (const nn::Parameter& each : net.parameters()) weights.push_back(each.in(g));
  const std::vector<Tensor> gradients = grad(first, weights);
  std::map<std::string, Tensor> fast;
  for (std::size_t i = 0; i < weights.size(); ++i)
    fast.insert_or_assign(net.parameters()[i].name(), weights[i] - gradients[i] * 0.5);
  Tensor loss;
  {
    const nn::Substitution use(net, fast);
    loss = net.loss(outer);
  }
  g.output("loss", loss);
  const std::vector<Tensor> meta = grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) g.output(net.parameters()[i].name(), meta[i]);
  return g.finish();
}

HostTensor waves(std::vector<std::int64_t> sizes, double phase) {
  HostTensor tensor(f32, std::move(sizes));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, std::sin(1.3 * static_cast<double>(i) + phase));
  return tensor;
}

/// Interprets a graph with the values of its arguments from `all`.
Tensors results_of(const ir::Graph& graph, const Tensors& all) {
  Tensors own;
  for (const ir::ValueId id : graph.arguments()) own.set(graph[id].name, all.at(graph[id].name));
  return ir::interpret(graph, own);
}

}  // namespace

TEST_CASE("gradients go through an inner step", "[substitution]") {
  const Net net;
  const ir::Graph graph = meta_step(net);
  Tensors arguments = net.initial_values(1);
  arguments.set("inner", waves({4, 2}, 0));
  arguments.set("outer", waves({5, 2}, 1));
  const Tensors results = ir::interpret(graph, arguments);
  for (const nn::Parameter& each : net.parameters()) {
    CAPTURE(each.name());
    Tensors moved = arguments;
    const double value = arguments.at(each.name()).get(0), step = 1e-2;
    const auto loss_at = [&](double at) {
      moved.at(each.name()).set(0, at);
      return ir::interpret(graph, moved).at("loss").get(0);
    };
    const double difference = (loss_at(value + step) - loss_at(value - step)) / (2 * step);
    CHECK(results.at(each.name()).get(0) == Approx(difference).epsilon(2e-2).margin(1e-4));
  }
  // Without the inner step the gradient is another one.
  Graph plain{"plain"};
  const Tensor loss = net.loss(plain.input("outer", f32, {5, 2}));
  plain.output("g", grad(loss, {net.parameter("up.weight").in(plain)})[0]);
  const double first_order = results_of(plain.finish(), arguments).at("g").get(0);
  CHECK(std::abs(first_order - results.at("up.weight").get(0)) > 1e-4);
}

TEST_CASE("averages of a training step are evaluated on the same store", "[substitution]") {
  const Net net;
  Graph g{"train"};
  const ir::Graph step =
      training_step(g, net.loss(g.input("x", f32, {4, 2})), SGD{.lr = 0.1}, {.average_decay = 0.5});
  Tensors store = net.initial_values(1);
  for (const auto& [name, value] : initial_values(step, {}, 0))
    if (!store.contains(name)) store.set(name, value);
  store.set("x", waves({4, 2}, 0));
  HostTensor average;
  for (int t = 1; t <= 4; ++t) {
    const Tensors results = ir::interpret(step, store);
    for (const ir::Update& update : step.updates)
      store.set(step[update.state].name, results.at(step[update.state].name));
    const HostTensor& p = store.at("up.weight");
    if (t == 1) average = p;
    for (std::int64_t i = 0; i < p.numel(); ++i) average.set(i, 0.5 * average.get(i) + 0.5 * p.get(i));
    for (std::int64_t i = 0; i < p.numel(); ++i)
      CHECK(store.at("optimizer.average.up.weight").get(i) == Approx(average.get(i)).epsilon(1e-5));
  }
  Graph evaluation{"evaluation"};
  {
    const nn::Substitution use(evaluation, [&](const nn::Parameter& p) {
      return evaluation.state("optimizer.average." + p.name(), p.dtype(), p.shape());
    });
    evaluation.output("loss", net.loss(evaluation.input("x", f32, {4, 2})));
  }
  Tensors averaged = store;
  for (const nn::Parameter& each : net.parameters())
    averaged.set(each.name(), store.at("optimizer.average." + each.name()));
  Graph plain{"plain"};
  plain.output("loss", net.loss(plain.input("x", f32, {4, 2})));
  CHECK(results_of(evaluation.finish(), store).at("loss").get(0) ==
        results_of(plain.finish(), averaged).at("loss").get(0));
}

TEST_CASE("substitutions nest", "[substitution]") {
  const Net net;
  Graph g{"nested"};
  const Tensor x = g.input("x", f32, {4, 2});
  const nn::Parameter weight = net.parameter("up.weight");
  const nn::Substitution doubled(g, [&](const nn::Parameter& p) { return p.in(g) * 2.0; });
  {
    const nn::Substitution more(g, [&](const nn::Parameter& p) -> std::optional<Tensor> {
      if (p.name() != "up.weight") return std::nullopt;
      return p.in(g) + 1.0;  // sees the outer substitution
    });
    g.output("inner", weight.in(g));
    g.output("other", net.parameter("down.weight").in(g));
  }
  g.output("outer", weight.in(g));
  Tensors arguments = net.initial_values(1);
  arguments.set("x", waves({4, 2}, 0));
  const Tensors results = results_of(g.finish(), arguments);
  const double w = arguments.at("up.weight").get(0);
  CHECK(results.at("inner").get(0) == Approx(2 * w + 1));
  CHECK(results.at("outer").get(0) == Approx(2 * w));
  CHECK(results.at("other").get(0) == Approx(2 * arguments.at("down.weight").get(0)));
}

TEST_CASE("faults of substitutions are errors", "[substitution]") {
  const Net net;
  Graph g{"faults"};
  const Tensor x = g.input("x", f32, {4, 2});
  const auto label = [](auto action) { return test::error_label([&] { action(); }); };
  CHECK(label([&] { const nn::Substitution use(net, {{"up.weigth", x}}); }) == "parameter_unknown");
  CHECK(label([&] { const nn::Substitution use(net, {}); }) == "tensor_empty");
  CHECK(label([&] {
          const nn::Substitution use(net, {{"up.weight", x}});
          (void)net.loss(x);
        }) == "parameter_replaced");
  // The parameter is back after an error.
  CHECK(net.parameter("up.weight").in(g).shape() == Shape{3, 2});
}
