#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "frontend/dsl.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/text/printer.h"
#include "tests/support/graphs/divisible_steps.h"
#include "tests/support/tensors/distance.h"

/// Models whose layers run as one loop, compared with the same models layer by layer.
using namespace lathe;
using test::divisible_gpt;
using test::divisible_llama;

namespace {

/// Returns the graph of the loss and of the gradients of all parameters.
template <class Model, class Config>
ir::Graph with_gradients(Config config, bool stacked) {
  config.stacked = stacked;
  Graph g{"model"};
  const Model model(g, config);
  const Tensor loss = model.loss(g.input("tokens", i64, {Dim("B"), Dim("T") + 1}));
  g.output("loss", loss);
  for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
  return g.finish();
}

Tensors arguments_of(const ir::Graph& graph) {
  Tensors arguments;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    HostTensor value(node.type.dtype, node.type.shape.evaluate({{"B", 2}, {"T", 5}}));
    for (std::int64_t i = 0; i < value.numel(); ++i)
      node.name == "tokens" ? value.set_int(i, i * 7 % 32)
                            : value.set(i, 0.4 * std::sin(1.3 * static_cast<double>(i + id.index)));
    arguments.set(node.name, std::move(value));
  }
  return arguments;
}

/// Returns layer `layer` of a stack.
HostTensor layer_of(const HostTensor& stack, std::int64_t layer) {
  HostTensor part(stack.dtype(), {stack.shape().begin() + 1, stack.shape().end()});
  for (std::int64_t i = 0; i < part.numel(); ++i) part.set(i, stack.get(layer * part.numel() + i));
  return part;
}

/// Returns the values by the names of separate layers: "h.ln_1.weight" [3, ..] -> "h.0.ln_1.weight", ..
Tensors separated(const Tensors& stacked, const std::string& prefix, std::int64_t layers) {
  Tensors separate;
  for (const auto& [name, value] : stacked) {
    const std::size_t at = name.find(prefix + ".");
    if (at == std::string::npos || (at != 0 && name.substr(0, at) != "grad.")) {
      separate.set(name, value);
      continue;
    }
    const std::size_t end = at + prefix.size() + 1;
    for (std::int64_t layer = 0; layer < layers; ++layer)
      separate.set(name.substr(0, end) + std::to_string(layer) + "." + name.substr(end), layer_of(value, layer));
  }
  return separate;
}

template <class Model, class Config>
void check_equal(const Config& config, const std::string& prefix) {
  const ir::Graph stacked = with_gradients<Model>(config, true), separate = with_gradients<Model>(config, false);
  const Tensors arguments = arguments_of(stacked);
  const Tensors found = separated(ir::interpret(stacked, arguments), prefix, config.layers),
                wanted = ir::interpret(separate, separated(arguments, prefix, config.layers));
  REQUIRE(found.size() == wanted.size());
  for (const auto& [name, value] : wanted) {
    CAPTURE(name);
    CHECK(ir::test::distance(found.at(name), value) < 1e-11);
  }
}

int nodes_of(const ir::Graph& graph) {
  int nodes = static_cast<int>(graph.nodes.size());
  for (const ir::Node& node : graph.nodes)
    if (ir::is_loop(node)) nodes += static_cast<int>(ir::loop_body(node).graph().nodes.size());
  return nodes;
}

}  // namespace

TEST_CASE("models with stacked layers have the values and gradients of separate ones", "[loops]") {
  check_equal<models::Gpt>(divisible_gpt(3, 0, f64), "h");
  check_equal<models::Llama>(divisible_llama(3, f64), "layers");
}

TEST_CASE("the IR of models with stacked layers does not depend on their number", "[loops]") {
  const auto check = [](const ir::Graph& few, const ir::Graph& many) {
    CHECK(nodes_of(few) == nodes_of(many));
    CHECK(few.outputs.size() == many.outputs.size());
    const auto lines = [](const ir::Graph& graph) {
      const std::string text = ir::print(graph);
      return std::ranges::count(text, '\n');
    };
    CHECK(lines(few) == lines(many));
  };
  check(with_gradients<models::Gpt>(divisible_gpt(2, 0.1, f32), true),
        with_gradients<models::Gpt>(divisible_gpt(192, 0.1, f32), true));
  check(with_gradients<models::Llama>(divisible_llama(2, f32), true),
        with_gradients<models::Llama>(divisible_llama(192, f32), true));
  CHECK(nodes_of(with_gradients<models::Gpt>(divisible_gpt(3, 0, f32), false)) >
        nodes_of(with_gradients<models::Gpt>(divisible_gpt(2, 0, f32), false)));
}
