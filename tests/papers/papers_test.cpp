#include "examples/papers/papers.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/tensor/op/op.h"
#include "runtime/compile.h"
#include "tests/papers/values.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"

/// The models of examples/papers against PyTorch (make_reference.py).
using namespace lathe;

namespace {

/// Returns values for all arguments of a graph.
Tensors values_of(const ir::Graph& graph, const papers::Size& size) {
  Tensors values;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    const double range = node.type.dtype == i64           ? static_cast<double>(size.vocabulary)
                         : node.op->name.value == "input" ? 2.0
                                                          : 0.6;
    values.set(node.name, test::drawn_tensor(node.name, node.type.dtype, node.type.shape.evaluate({}), range));
  }
  return values;
}

Tensors inputs_of(const ir::Graph& graph, const Tensors& values) {
  Tensors inputs;
  for (const ir::ValueId id : graph.arguments())
    if (graph[id].op->name.value == "input") inputs.set(graph[id].name, values.at(graph[id].name));
  return inputs;
}

Tensors states_of(const ir::Graph& graph, const Tensors& values) {
  Tensors states;
  for (const ir::ValueId id : graph.arguments())
    if (graph[id].op->name.value != "input" && values.contains(graph[id].name))
      states.set(graph[id].name, values.at(graph[id].name));
  return states;
}

const nlohmann::json& references() {
  static const auto all = nlohmann::json::parse(std::ifstream(test::test_data("papers/reference.json")));
  return all;
}

}  // namespace

TEST_CASE("papers: losses and gradients equal those of PyTorch", "[papers]") {
  CHECK(references().size() == papers::all_papers().size());
  for (const papers::Paper& paper : papers::all_papers()) {
    CAPTURE(paper.name);
    const papers::Size size{.dtype = f64, .length = paper.least_length};
    Graph g{paper.name};
    const Tensor loss = paper.loss(g, size);
    g.output("loss", loss);
    for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
    const ir::Graph graph = g.finish();
    const Tensors values = values_of(graph, size);
    Executable executable = compile(graph, {.cache = test::shared_kernels()});
    executable.parameters().set(states_of(graph, values));
    const Tensors results = executable.run(inputs_of(graph, values));

    const nlohmann::json& expected = references().at(std::string(paper.name));
    CHECK(results.at("loss").get(0) == Approx(expected["loss"].get<double>()).epsilon(1e-11));
    CHECK(results.size() == expected["gradients"].size() + 1);
    for (const auto& [name, numbers] : expected["gradients"].items()) {
      CAPTURE(name);
      const HostTensor& gradient = results.at("grad." + name);
      double weighted = 0, squares = 0;
      for (std::int64_t i = 0; i < gradient.numel(); ++i) {
        weighted += gradient.get(i) * (test::drawn("check." + name, i) - 0.5);
        squares += gradient.get(i) * gradient.get(i);
      }
      const double margin = 1e-11 * std::sqrt(squares);
      CHECK(weighted == Approx(numbers[0].get<double>()).epsilon(1e-10).margin(margin + 1e-14));
      CHECK(squares == Approx(numbers[1].get<double>()).epsilon(1e-10).margin(1e-20));
    }
  }
}

TEST_CASE("papers: a user's Muon equals the library's", "[papers]") {
  const papers::Size size{.dtype = f64};
  const auto trained = [&](const Optimizer& optimizer) {
    Graph g{"muon"};
    const Tensor loss = papers::muon_mlp(g, size);
    const ir::Graph step = training_step(g, loss, optimizer);
    const Tensors values = values_of(step, size);
    Executable executable = compile(step, {.cache = test::shared_kernels()});
    executable.parameters().set(initial_states(step, 0));
    for (const char* name : {"0.up.weight", "0.down.weight", "1.up.weight", "1.down.weight"})
      executable.parameters().set(name, values.at(name));
    for (int i = 0; i < 5; ++i) executable.run(inputs_of(step, values));
    return executable.parameters().get("0.down.weight");
  };
  const HostTensor own = trained(papers::muon(0.02)), built_in = trained(Muon{.lr = 0.02});
  double most = 0;
  for (std::int64_t i = 0; i < own.numel(); ++i) most = std::max(most, std::abs(own.get(i) - built_in.get(i)));
  CHECK(most < 1e-12);
}
