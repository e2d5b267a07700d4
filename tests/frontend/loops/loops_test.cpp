#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/stage.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/graphs/loop_cases.h"

/// Loops against one copy of the body per iteration, with first and second derivatives; their text and errors.
using namespace lathe;
using lathe::test::LoopCase;

namespace {

void check_equal(const Tensors& found, const Tensors& wanted, double tolerance) {
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    const HostTensor& other = found.at(name);
    REQUIRE(other.shape() == tensor.shape());
    double most = 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      most = std::max(most, std::abs(other.get(i) - tensor.get(i)) / (1 + std::abs(tensor.get(i))));
    CHECK(most < tolerance);
  }
}

}  // namespace

TEST_CASE("loops equal their unrolled form, with first and second derivatives", "[loops]") {
  for (const LoopCase& each : test::loop_cases()) {
    CAPTURE(each.name);
    const Tensors arguments = each.arguments(f64);
    const Tensors wanted = ir::interpret(each.graph(f64, true, true), arguments);
    const ir::Graph graph = each.graph(f64, false, true);
    check_equal(ir::interpret(graph, arguments), wanted, 1e-11);
    const ir::Graph simpler = ir::run_pipeline(graph, ir::default_pipeline()).graph;
    check_equal(ir::interpret(simpler, arguments), wanted, 1e-11);
  }
}

TEST_CASE("loops print and parse", "[loops]") {
  for (const LoopCase& each : test::loop_cases()) {
    CAPTURE(each.name);
    const ir::Graph graph = each.graph(f32, false);
    const std::string text = ir::print(graph);
    CHECK(ir::print(ir::parse_graph(text)) == text);
    CHECK(ir::structurally_equal(ir::parse_graph(text), graph, {.names = false}));
  }
}

namespace {

struct Mlp : nn::Layer<Mlp> {
  Mlp(const Module& parent, std::string_view name)
      : Layer(parent, name, "Mlp"), norm(*this, "norm", 4), up(*this, "up", 4, 8), down(*this, "down", 8, 4) {}
  Tensor forward(const Tensor& x) const { return x + down(gelu(up(norm(x)))); }
  nn::LayerNorm norm;
  nn::Linear up, down;
};

/// The loss of three layers and its gradients, by parameter.
ir::Graph layers_graph(bool stacked) {
  Graph g{"layers"};
  const Tensor x = g.input("x", f64, {2, 4});
  const nn::Module root("Model", f64);
  Tensor y = x;
  if (stacked) {
    const nn::Stacked<Mlp> layers(root, "h", 3, [](const nn::Module& layer) { return Mlp(layer, "mlp"); });
    y = layers(x, [](const Mlp& mlp, const Tensor& h) { return mlp(h); });
  } else {
    for (int i = 0; i < 3; ++i) y = Mlp(root, "h." + std::to_string(i))(y);
  }
  const Tensor loss = (y * y).sum();
  g.output("loss", loss);
  for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
  return g.finish();
}

HostTensor layer_of(const HostTensor& stack, std::int64_t layer) {
  HostTensor part(stack.dtype(), {stack.shape().begin() + 1, stack.shape().end()});
  for (std::int64_t i = 0; i < part.numel(); ++i) part.set(i, stack.get(layer * part.numel() + i));
  return part;
}

}  // namespace

TEST_CASE("stacked layers compute and train as separate ones", "[loops]") {
  const ir::Graph stacked = layers_graph(true), separate = layers_graph(false);
  Tensors of_stacked, of_separate;
  for (const ir::ValueId id : stacked.arguments()) {
    const ir::Node& node = stacked[id];
    HostTensor value(f64, node.type.shape.evaluate({}));
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, 0.5 * std::sin(1 + 1.3 * static_cast<double>(i)));
    if (node.name == "x") of_separate.set("x", value);
    for (std::int64_t layer = 0; node.name != "x" && layer < 3; ++layer)  // h.mlp.up.weight -> h.1.up.weight
      of_separate.set("h." + std::to_string(layer) + node.name.substr(5), layer_of(value, layer));
    of_stacked.set(node.name, std::move(value));
  }
  const Tensors found = ir::interpret(stacked, of_stacked), wanted = ir::interpret(separate, of_separate);
  CHECK(std::abs(found.at("loss").get(0) - wanted.at("loss").get(0)) < 1e-11);
  for (const auto& [name, gradient] : found)
    for (std::int64_t layer = 0; name != "loss" && layer < 3; ++layer) {
      CAPTURE(name, layer);
      const HostTensor part = layer_of(gradient, layer);
      const HostTensor& other = wanted.at("grad.h." + std::to_string(layer) + name.substr(10));
      for (std::int64_t i = 0; i < part.numel(); ++i) CHECK(std::abs(part.get(i) - other.get(i)) < 1e-11);
    }
}

TEST_CASE("stacked layers start as separate ones do", "[loops]") {
  const nn::Module root("Model");
  const nn::Stacked<Mlp> layers(root, "h", 3, [](const nn::Module& layer) { return Mlp(layer, "mlp"); });
  const Tensors values = root.initial_values(1);
  CHECK(values.at("h.mlp.up.weight").shape() == std::vector<std::int64_t>{3, 8, 4});
  CHECK(values.at("h.mlp.norm.weight").get(0) == 1);
  CHECK(values.at("h.mlp.up.bias").get(0) == 0);
  CHECK(values.at("h.mlp.up.weight").get(0) != values.at("h.mlp.up.weight").get(32));
}

TEST_CASE("each iteration of a loop draws its own random numbers", "[loops]") {
  Graph g{"draws"};
  const Tensor x = g.input("x", f64, {4, 100});
  const auto [last, all] = scan(g.zeros({100}, f64), x, [](const Tensor& h, const Tensor& row) {
    const Tensor next = h + dropout(row, 0.5);
    return std::pair(next, dropout(row, 0.25));
  });
  g.output("all", all);
  g.output("grad", grad((last * last).sum(), {x})[0]);
  HostTensor ones(f64, {4, 100});
  for (std::int64_t i = 0; i < ones.numel(); ++i) ones.set(i, 1);
  HostTensor rng(i64, {2});
  rng.set_int(0, 7);
  const Tensors results = ir::interpret(g.finish(), {{"x", ones}, {"rng", rng}});
  const HostTensor& kept = results.at("all");
  int equal = 0, zeros = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    equal += kept.get(i) == kept.get(100 + i) ? 1 : 0;
    zeros += kept.get(i) == 0 ? 1 : 0;
  }
  CHECK((equal > 40 && equal < 85));  // about 62 of 100 pairs of draws agree
  CHECK((zeros > 10 && zeros < 40));
  // The gradient has the zeros of the forward draws: with k of four kept, it is that of (2 k)^2.
  const HostTensor& gradient = results.at("grad");
  for (std::int64_t i = 0; i < 100; ++i) {
    double rows = 0;
    for (std::int64_t t = 0; t < 4; ++t) rows += gradient.get(t * 100 + i) != 0 ? 1 : 0;
    for (std::int64_t t = 0; t < 4; ++t) {
      const double found = gradient.get(t * 100 + i);
      CHECK((found == 0 || std::abs(found - 8 * rows) < 1e-12));
    }
  }
}
