#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/op/op.h"

/// Parameter groups, gradients by name, and hooks of a training step.
using namespace lathe;
using Catch::Contains;

namespace {

/// loss = sum(w * x) + sum(b * b), so that dw = x and db = 2 b.
struct Small {
  Graph g{"small"};
  Tensor x = g.input("x", f64, {2});
  Tensor w = g.parameter("layer.w", f64, {2}), b = g.parameter("layer.bias", f64, {2});
  Tensor loss = (w * x).sum() + (b * b).sum();
};

HostTensor two(double a, double b) { return HostTensor::from({2}, {a, b}, f64); }

/// Returns all outputs and new states of the first run: w = {1, 2}, b = {3, 4}, x = {5, 6}, other states zero.
Tensors first_run(const ir::Graph& step) {
  Tensors arguments = initial_values(step, {}, 0);
  arguments.insert_or_assign("x", two(5, 6));
  arguments.insert_or_assign("layer.w", two(1, 2));
  arguments.insert_or_assign("layer.bias", two(3, 4));
  return ir::interpret(step, arguments);
}

void check_near(const HostTensor& value, double a, double b) {
  CHECK(value.at({0}) == Approx(a).epsilon(1e-12));
  CHECK(value.at({1}) == Approx(b).epsilon(1e-12));
}

std::string error_of(const TrainingOptions& options) {
  const Small s;
  try {
    training_step(s.g, s.loss, SGD{}, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a parameter group has its own optimizer") {
  const Small s;
  const ParameterGroup biases{"biases", names_with({"bias"}), SGD{.lr = 0.5, .weight_decay = 1}};
  const Tensors out = first_run(training_step(s.g, s.loss, SGD{.lr = 0.1}, {.groups = {biases}}));
  check_near(out.at("layer.w"), 1 - 0.1 * 5, 2 - 0.1 * 6);
  check_near(out.at("layer.bias"), 3 - 0.5 * (2 * 3 + 3), 4 - 0.5 * (2 * 4 + 4));
  CHECK(out.at("learning_rate").get(0) == 0.1);
  CHECK(out.at("learning_rate.biases").get(0) == 0.5);
}

TEST_CASE("the first group that matches a parameter wins, and optimizers may differ") {
  const Small s;
  const ParameterGroup first{"biases", names_with({"bias"}), SGD{.lr = 0.5}};
  const ParameterGroup rest{"all", names_with({"layer"}), Adam{.lr = 0.25, .eps = 0}};
  const ir::Graph step = training_step(s.g, s.loss, SGD{.lr = 0.1}, {.clip_norm = 1e9, .groups = {first, rest}});
  const Tensors out = first_run(step);
  check_near(out.at("layer.bias"), 3 - 0.5 * 6, 4 - 0.5 * 8);
  check_near(out.at("layer.w"), 1 - 0.25, 2 - 0.25);  // Adam's first step is lr for any gradient
  CHECK(step.find_argument("optimizer.m.layer.w").valid());
  CHECK(!step.find_argument("optimizer.m.layer.bias").valid());
}

TEST_CASE("a step without groups, reports and hooks builds the same graph as before") {
  const Small s;
  const ir::Graph plain = training_step(s.g, s.loss, AdamW{});
  const ir::Graph same = training_step(s.g, s.loss, AdamW{}, {.gradient_hook = [](std::span<NamedGradient>) {}});
  CHECK(plain.size() == same.size());
  CHECK(plain.outputs.size() == 3);
}

TEST_CASE("gradients can be outputs by name") {
  const Small s;
  const TrainingOptions options{.clip_norm = 1e-3, .reported_gradients = names_with({"layer"})};
  const Tensors out = first_run(training_step(s.g, s.loss, SGD{}, options));
  check_near(out.at("grad.layer.w"), 5, 6);  // before clipping
  check_near(out.at("grad.layer.bias"), 6, 8);
  const ir::Graph one = training_step(s.g, s.loss, SGD{}, {.reported_gradients = names_with({"bias"})});
  CHECK(first_run(one).count("grad.layer.w") == 0);
}

TEST_CASE("reporting gradients of no trained parameter is an error") {
  CHECK_THAT(error_of({.reported_gradients = names_with({"head"})}),
             Contains("[reported_gradients]") && Contains("trained are: layer.w, layer.bias"));
  CHECK_THAT(error_of({.trainable = names_with({"bias"}), .reported_gradients = names_with({".w"})}),
             Contains("[reported_gradients]") && Contains("trained are: layer.bias"));
}

TEST_CASE("weight decay of matrices is no error in a model of vectors") {
  Graph g("vectors");
  const Tensor loss = (g.parameter("w", f64, {3}) * g.input("x", f64, {3})).sum();
  CHECK_NOTHROW(training_step(g, loss, AdamW{}, {.decayed = matrices()}));
  CHECK_THROWS_WITH(training_step(g, loss, AdamW{}, {.decayed = names_with({"v"})}), Contains("[train_options]"));
}

TEST_CASE("the optimizer name is part of the names of its states") {
  const Small s;
  const auto states = [&](const TrainingOptions& options) {
    const ir::Graph step = training_step(s.g, s.loss, Adam{}, options);
    std::set<std::string> names;
    for (const ir::ValueId id : step.arguments())
      if (step[id].op->name.value == "state") names.insert(step[id].name);
    return names;
  };
  const std::set<std::string> plain = states({.accumulate = 2, .trainable = names_with({"bias"})});
  CHECK(plain == std::set<std::string>{"optimizer.step", "optimizer.micro_step", "optimizer.accumulated.layer.bias",
                                       "optimizer.m.layer.bias", "optimizer.v.layer.bias"});
  std::set<std::string> named;
  for (const std::string& name : plain)
    named.insert("optimizer.slow-1." + name.substr(std::string("optimizer.").size()));
  CHECK(states({.name = "slow-1", .accumulate = 2, .trainable = names_with({"bias"})}) == named);
  CHECK(states({.name = "a", .precision = f16}).contains("optimizer.a.loss_scale.exponent"));
  for (const char* name : {"a.b", "a b", "m", "step", "loss_scale"})
    CHECK_THAT(error_of({.name = name}), Contains("[train_options]") && Contains(name));
}

TEST_CASE("gradients by name without a training step") {
  const Small s;
  s.g.parameter("idle", f64, {3});
  s.g.parameter("count", i64, {3});
  const auto gradients = parameter_gradients(s.loss);
  REQUIRE(gradients.size() == 2);
  for (const auto& [name, gradient] : gradients) s.g.output("grad." + name, gradient);
  const Tensors out = ir::interpret(s.g.finish(), {{"x", two(5, 6)},
                                                   {"layer.w", two(1, 2)},
                                                   {"layer.bias", two(3, 4)},
                                                   {"idle", HostTensor(f64, {3})},
                                                   {"count", HostTensor(i64, {3})}});
  check_near(out.at("grad.layer.w"), 5, 6);
  check_near(out.at("grad.layer.bias"), 6, 8);
}

TEST_CASE("a hook changes gradients before norm, clipping and update") {
  const Small s;
  TrainingOptions options{.reported_gradients = names_with({"layer"})};
  options.gradient_hook = [](std::span<NamedGradient> all) {
    REQUIRE(all.size() == 2);
    CHECK(all[0].name == "layer.w");
    CHECK(all[1].name == "layer.bias");
    all[0].gradient = maximum(minimum(all[0].gradient, 5.5), 0);
    all[1].gradient = all[1].gradient + all[1].parameter;
  };
  for (const double clip : {0.0, 1.0}) {
    options.clip_norm = clip;
    const Tensors out = first_run(training_step(s.g, s.loss, SGD{.lr = 0.1}, options));
    const double norm = std::sqrt(25 + 5.5 * 5.5 + 81 + 144), factor = clip == 0 ? 1 : 1 / (norm + 1e-6);
    CHECK(out.at("grad_norm").get(0) == Approx(norm).epsilon(1e-12));
    check_near(out.at("grad.layer.w"), 5, 5.5);
    check_near(out.at("layer.w"), 1 - 0.1 * 5 * factor, 2 - 0.1 * 5.5 * factor);
    check_near(out.at("layer.bias"), 3 - 0.1 * 9 * factor, 4 - 0.1 * 12 * factor);
  }
}

TEST_CASE("a hook may have states, which start at zero") {
  const Small s;
  const auto keeping = [](const Init& init) {
    return [init](std::span<NamedGradient> all) {
      NamedGradient& w = all[0];
      const Graph g = w.gradient.graph();
      const Tensor mean = g.state("mean." + w.name, f64, {2}, init);
      w.gradient = mean * 0.9 + w.gradient * 0.1;
      g.update(mean, w.gradient);
    };
  };
  for (const DType precision : {f32, bf16}) {
    const ir::Graph step =
        training_step(s.g, s.loss, SGD{}, {.precision = precision, .gradient_hook = keeping(Init::zeros())});
    std::string name;
    for (const ir::ValueId id : step.arguments())
      if (step[id].name.find("mean.") != std::string::npos) name = step[id].name;
    CHECK(name == "optimizer.mean.layer.w");
    check_near(first_run(step).at(name), 0.5, 0.6);
  }
  CHECK_THAT(error_of({.gradient_hook = keeping(Init::ones())}),
             Contains("[gradient_hook]") && Contains("mean.layer.w"));
}

TEST_CASE("errors of groups and hooks name the group or hook") {
  const ParameterGroup all{"all", names_with({""}), SGD{}}, none{"head", names_with({"head"}), SGD{}};
  CHECK_THAT(error_of({.groups = {none}}), Contains("the group head has no parameter") && Contains("[train_groups]"));
  CHECK_THAT(error_of({.groups = {all, all}}), Contains("two groups are named all") && Contains("[train_groups]"));
  CHECK_THAT(error_of({.groups = {{"", names_with({""}), SGD{}}}}),
             Contains("no name") && Contains("[train_groups]"));
  CHECK_THAT(error_of({.groups = {{"a", {}, SGD{}}}}), Contains("which parameters") && Contains("[train_groups]"));
  CHECK_THAT(error_of({.groups = {{"a", names_with({""}), SGD{.lr = -1}}}}),
             Contains("the group a: SGD: lr is -1") && Contains("[optimizer_options]") &&
                 Contains("parameter_groups_test.cpp:"));
  const auto replaced = [](const std::function<Tensor(const Tensor&)>& by) {
    return error_of({.gradient_hook = [by](std::span<NamedGradient> g) { g[0].gradient = by(g[0].gradient); }});
  };
  CHECK_THAT(replaced([](const Tensor& t) { return t.sum(); }),
             Contains("layer.w: f64[2] a gradient f64[]") && Contains("[gradient_hook]"));
  CHECK_THAT(replaced([](const Tensor& t) { return t.to(i64); }), Contains("a gradient i64[2]"));
  CHECK_THAT(replaced([](const Tensor&) { return Tensor(); }), Contains("no gradient"));
  const Small other;
  CHECK_THAT(replaced([&](const Tensor&) { return other.x; }), Contains("[op_other_graph]"));
}
