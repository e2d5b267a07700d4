#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "frontend/dsl.h"
#include "frontend/nn/substitution.h"
#include "ir/tensor/interpret/interpreter.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/texts/test_data.h"

/// Steps that are composed of losses and gradients: sharpness-aware minimization, and two losses with an optimizer
/// each in one graph. Compared with their references (make_cases.py). docs/optimizers.md and
/// docs/several-optimizers.md show these programs.
using namespace lathe;

namespace {

HostTensor waves(std::vector<std::int64_t> sizes, const std::function<double(double)>& value) {
  HostTensor tensor(f64, std::move(sizes));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, value(static_cast<double>(i)));
  return tensor;
}

const nn::LinearOptions plain{.dtype = f64, .bias = false, .in_out = true};

/// A network with one hidden layer.
struct Small : nn::Module {
  Small() : Module("Small"), up(*this, "up", 4, 6, plain), down(*this, "down", 6, 3, plain) {}
  Tensor operator()(const Tensor& x) const { return down(tanh(up(x))); }
  nn::Linear up, down;
};

/// Runs 20 steps and returns the parameters.
Tensors trained(const ir::Graph& step) {
  Tensors values = initial_values(step, {}, 0);
  values.set("up.weight", waves({4, 6}, [](double i) { return 0.5 * std::sin(1 + i); }));
  values.set("down.weight", waves({6, 3}, [](double i) { return 0.5 * std::sin(2 + i); }));
  for (int t = 1; t <= 20; ++t) {
    values.set("x", waves({5, 4}, [&](double i) { return std::cos(0.3 * i + 0.7 * t); }));
    values.set("y", waves({5, 3}, [&](double i) { return std::cos(0.3 * i + 0.7 * t + 1); }));
    const Tensors results = ir::interpret(step, values);
    for (const ir::Update& update : step.updates)
      values.set(step[update.state].name, results.at(step[update.state].name));
  }
  return values;
}

void compare(const std::string& name, const ir::Graph& step) {
  const SafetensorsFile references =
      SafetensorsFile::open(test::test_data("frontend/optimizers/optimizer_cases.safetensors"));
  const Tensors values = trained(step);
  for (const std::string parameter : {"up", "down"}) {
    const HostTensor wanted = references.tensor(name + "." + parameter), found = values.at(parameter + ".weight");
    CAPTURE(name, parameter);
    REQUIRE(found.numel() == wanted.numel());
    for (std::int64_t i = 0; i < found.numel(); ++i) CHECK(std::abs(found.get(i) - wanted.get(i)) < 1e-10);
  }
}

}  // namespace

TEST_CASE("a sharpness-aware step: the gradient at the weights of the largest loss nearby", "[optimizers]") {
  const Small model;
  Graph g{"sam"};
  const Tensor x = g.input("x", f64, {5, 4}), y = g.input("y", f64, {5, 3});
  const auto loss = [&] { return square(model(x) - y).mean(); };
  const std::map<std::string, Tensor> gradients = parameter_gradients(loss());
  Tensor squares = g.constant(0, f64);
  for (const auto& [name, gradient] : gradients) squares += square(gradient).sum();
  const Tensor scale = 0.05 / (sqrt(squares) + 1e-12);
  std::map<std::string, Tensor> nearby;
  for (const nn::Parameter& p : model.parameters())
    nearby.insert_or_assign(p.name(), p.in(g) + (gradients.at(p.name()) * scale).detach());
  const nn::Substitution use(model, nearby);
  compare("sam", training_step(g, loss(), AdamW{.lr = 0.02, .weight_decay = 0.1}));
}

TEST_CASE("two losses of one graph train disjoint parameters by an optimizer each", "[optimizers]") {
  const Small model;
  Graph g{"two_losses"};
  const Tensor x = g.input("x", f64, {5, 4}), y = g.input("y", f64, {5, 3});
  // The parameters of a layer as constants: a loss does not train them.
  const auto constant = [&](std::string_view layer) {
    return nn::Substitution(g, [&g, layer](const nn::Parameter& p) {
      return p.name().starts_with(layer) ? std::optional(p.in(g).detach()) : std::nullopt;
    });
  };
  const auto first = [&] {
    const nn::Substitution use = constant("down");
    return square(model(x) - y).mean();
  };
  const auto second = [&] {
    const nn::Substitution use = constant("up");
    return square(model(x) + y).mean();
  };
  compare("two_losses", training_step(g, first() + second(), AdamW{.lr = 0.02, .weight_decay = 0.1},
                                      {.groups = {{.name = "down",
                                                   .parameters = names_with({"down"}),
                                                   .optimizer = SGD{.lr = 0.05, .momentum = 0.9}}}}));
}
