#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/texts/test_data.h"

/// Optimizers and schedules against their reference implementations (make_cases.py), and optimizers of a user.
using namespace lathe;
using Catch::Contains;

namespace {

constexpr int steps = 20;

struct Named {
  std::string name;
  std::vector<std::int64_t> sizes;
};
const std::vector<Named> matrices_only{{"a", {6, 4}}, {"b", {4, 6}}, {"c", {6, 4}}};
const std::vector<Named> small{{"a", {6, 4}}, {"b", {4, 6}}, {"c", {6, 4}}, {"v", {5}}};
const std::vector<Named> near_square{{"a", {6, 4}}, {"b", {4, 6}}, {"c", {4, 4}}, {"v", {5}}, {"t", {3, 4, 4}}};
const std::vector<Named> big{{"a", {30, 40}}, {"v", {300}}};

Shape shape_of(const Named& parameter) {
  return Shape(std::vector<Dim>(parameter.sizes.begin(), parameter.sizes.end()));
}

template <class Function>
HostTensor filled(const Named& parameter, const Function& value) {
  HostTensor tensor(f64, parameter.sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, value(static_cast<double>(i)));
  return tensor;
}

/// loss = sum over parameters of p * coefficients + 0.05 p^2.
ir::Graph step_for(const Optimizer& optimizer, const std::vector<Named>& parameters,
                   const TrainingOptions& options = {}) {
  Graph g{"step"};
  Tensor loss = g.constant(0, f64);
  for (const Named& each : parameters) {
    const Tensor p = g.parameter(each.name, f64, shape_of(each));
    const Tensor coefficients = g.input("coefficients." + each.name, f64, shape_of(each));
    loss = loss + (p * coefficients).sum() + (p * p).sum() * 0.05;
  }
  return training_step(g, loss, optimizer, options);
}

/// Returns parameters and states after 20 steps.
Tensors trained(const ir::Graph& step, const std::vector<Named>& parameters) {
  Tensors values = initial_values(step, {}, 0);
  for (std::size_t k = 0; k < parameters.size(); ++k)
    values.set(parameters[k].name,
               filled(parameters[k], [&](double i) { return 0.5 * std::sin(1.0 + static_cast<double>(k) + i); }));
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t k = 0; k < parameters.size(); ++k)
      values.set("coefficients." + parameters[k].name, filled(parameters[k], [&](double i) {
                   return std::cos(0.3 * i + 0.7 * t + static_cast<double>(k));
                 }));
    const Tensors results = ir::interpret(step, values);
    for (const ir::Update& update : step.updates) {
      const std::string& name = step[update.state].name;
      values.set(name, results.at(name));
    }
  }
  return values;
}

const SafetensorsFile& references() {
  static const SafetensorsFile file =
      SafetensorsFile::open(test::test_data("frontend/optimizers/optimizer_cases.safetensors"));
  return file;
}

double distance(const HostTensor& found, const HostTensor& wanted) {
  REQUIRE(found.numel() == wanted.numel());
  double most = 0;
  for (std::int64_t i = 0; i < found.numel(); ++i) most = std::max(most, std::abs(found.get(i) - wanted.get(i)));
  return most;
}

void compare(const std::string& name, const Optimizer& optimizer, const std::vector<Named>& parameters) {
  CAPTURE(name);
  const Tensors values = trained(step_for(optimizer, parameters), parameters);
  for (const Named& each : parameters)
    CHECK(distance(values.at(each.name), references().tensor(name + "." + each.name)) < 1e-10);
}

double rate_at(const Schedule& schedule, double step) {
  Graph g{"rate"};
  g.output("rate", schedule.at(g.constant(step, f64)));
  return ir::interpret(g.finish(), {}).at("rate").get(0);
}

Tensor warmup_of_5(const Tensor& step) { return minimum(step / 5.0, 1.0) * 0.02; }

std::string error_of(const Optimizer& optimizer, const std::vector<Named>& parameters = small) {
  try {
    step_for(optimizer, parameters);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("optimizers equal their reference implementations", "[optimizers]") {
  compare("sgd", SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, small);
  compare("adam", Adam{.lr = 0.02, .weight_decay = 0.1}, small);
  compare("adamw", AdamW{.lr = 0.02, .weight_decay = 0.1}, small);
  compare("lion", Lion{.lr = 0.01, .weight_decay = 0.1}, small);
  compare("adafactor", Adafactor{.lr = 0.05, .weight_decay = 0.1}, small);
  compare("muon", Muon{.lr = 0.02}, matrices_only);
  compare("muon_like_adamw", Muon{.lr = 0.02, .nesterov = false, .scale = Muon::Scale::like_adamw}, matrices_only);
  compare("schedule_free", ScheduleFreeAdamW{.lr = warmup_of_5, .weight_decay = 0.1}, small);
  compare("adamw_8bit", AdamW8bit{.lr = 0.01, .weight_decay = 0.1, .smallest = 1}, big);
  const SOAP soap{.lr = 0.02, .beta2 = 0.9, .weight_decay = 0.1, .frequency = 3, .largest_dim = 5};
  compare("soap", soap, near_square);
  SOAP normalized{.lr = 0.02, .beta2 = 0.9, .weight_decay = 0.1, .frequency = 1, .normalize = true};
  compare("soap_normalized", normalized, {{"c", {4, 4}}});
}

TEST_CASE("SOAP: bases stay orthonormal, also where the first gradient has a low rank", "[optimizers]") {
  const Tensors values = trained(step_for(SOAP{.lr = 0.02, .frequency = 2}, small), small);
  for (const char* name : {"basis0.a", "basis1.a", "basis0.b", "basis1.b"}) {
    CAPTURE(name);
    const HostTensor& q = values.at(std::string("optimizer.") + name);
    const std::int64_t n = q.shape()[0];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double product = 0;
        for (std::int64_t k = 0; k < n; ++k) product += q.get(k * n + i) * q.get(k * n + j);
        CHECK(product == Approx(i == j ? 1 : 0).margin(1e-12));
      }
  }
  CHECK(!values.contains("optimizer.basis0.v"));
}

TEST_CASE("the average of schedule-free AdamW equals the reference", "[optimizers]") {
  const Tensors values = trained(step_for(ScheduleFreeAdamW{.lr = warmup_of_5, .weight_decay = 0.1}, small), small);
  for (const Named& each : small) {
    Graph g{"average"};
    const Tensor y = g.input("y", f64, shape_of(each)), z = g.input("z", f64, shape_of(each));
    g.output("x", schedule_free_average(y, z, 0.9));
    const Tensors results =
        ir::interpret(g.finish(), {{"y", values.at(each.name)}, {"z", values.at("optimizer.z." + each.name)}});
    CHECK(distance(results.at("x"), references().tensor("schedule_free." + each.name + ".average")) < 1e-10);
  }
}

TEST_CASE("a schedule-free evaluation reads the averages, and before the first step the parameters", "[optimizers]") {
  Graph g{"forward"};
  const Tensor w = g.parameter("w", f64, {2}), fixed = g.parameter("fixed", f64, {2});
  const Tensor loss = (w * w * fixed.detach()).sum();
  g.output("loss", loss);
  const ir::Graph forward = g.finish();
  const ir::Graph step =
      training_step(forward, "loss", ScheduleFreeAdamW{.lr = 0.1},
                    {.trainable = [](const ir::Node& parameter) { return parameter.name == "w"; }});
  const std::vector<std::string> trained = schedule_free_parameters(step);
  CHECK(trained == std::vector<std::string>{"w"});
  const ir::Graph evaluation = schedule_free_evaluation(forward, trained, 0.9);
  CHECK(evaluation.arguments().size() == 4);
  const auto at = [&](std::int64_t updates) {
    return ir::interpret(evaluation, {{"w", HostTensor::from({2}, {1.0, 2.0}, f64)},
                                      {"fixed", HostTensor::from({2}, {1.0, 10.0}, f64)},
                                      {"optimizer.z.w", HostTensor::from({2}, {1.9, 2.0}, f64)},
                                      {"optimizer.step", HostTensor::of<std::int64_t>({}, {updates})}})
        .at("loss")
        .get(0);
  };
  CHECK(at(0) == Approx(1 + 40));
  CHECK(at(3) == Approx(0.9 * 0.9 + 40));
  CHECK(schedule_free_parameters(training_step(forward, "loss", AdamW{})).empty());
  CHECK(schedule_free_evaluation(forward, {}, 0.9).arguments().size() == 2);
}

TEST_CASE("8-bit states take a quarter of the bytes", "[optimizers]") {
  const auto bytes = [](const Optimizer& optimizer) {
    Graph g{"step"};
    const Tensor p = g.parameter("p", f32, {512, 512});
    const ir::Graph step = training_step(g, (p * p).sum(), optimizer);
    std::int64_t sum = 0;
    for (const ir::ValueId id : step.arguments())
      if (step[id].name.starts_with("optimizer."))
        sum += *step[id].type.shape.numel().value() * static_cast<std::int64_t>(size_in_bytes(step[id].type.dtype));
    return sum;
  };
  const std::int64_t full = bytes(AdamW{}), small_states = bytes(AdamW8bit{});
  CHECK(full == 2 * 4 * 512 * 512 + 8);
  CHECK(static_cast<double>(small_states) < 0.255 * static_cast<double>(full));
  const Tensors values = initial_values(step_for(AdamW8bit{}, small), {}, 0);
  CHECK(values.at("optimizer.m.a").dtype() == f64);
}

TEST_CASE("schedules match their formulas", "[optimizers]") {
  const auto cosine = Schedule::warmup_cosine({.peak = 1.0, .warmup = 10, .total = 110, .floor = 0.1});
  CHECK(rate_at(cosine, 5) == Approx(0.5));
  CHECK(rate_at(cosine, 10) == Approx(1.0));
  CHECK(rate_at(cosine, 35) == Approx(0.1 + 0.9 * 0.5 * (1 + std::cos(std::acos(-1.0) / 4))));
  CHECK(rate_at(cosine, 60) == Approx(0.55));
  CHECK(rate_at(cosine, 110) == Approx(0.1));
  CHECK(rate_at(cosine, 500) == Approx(0.1));
  CHECK(rate_at(Schedule::warmup_cosine({.peak = 2, .warmup = 0, .total = 50}), 25) == Approx(1.0));
  const auto linear = Schedule::warmup_linear({.peak = 1.0, .warmup = 10, .total = 110, .floor = 0.1});
  CHECK(rate_at(linear, 5) == Approx(0.5));
  CHECK(rate_at(linear, 35) == Approx(1 - 0.9 * 0.25));
  CHECK(rate_at(linear, 500) == Approx(0.1));
  const auto stable =
      Schedule::warmup_stable_decay({.peak = 1, .warmup = 10, .decay = 20, .total = 100, .floor = 0.2});
  CHECK(rate_at(stable, 3) == Approx(0.3));
  CHECK(rate_at(stable, 80) == Approx(1));
  CHECK(rate_at(stable, 90) == Approx(0.6));
  CHECK(rate_at(stable, 130) == Approx(0.2));
  const auto noam = Schedule::noam({.factor = 0.5, .d_model = 32, .warmup = 8});
  CHECK(rate_at(noam, 3) == Approx(0.5 * std::pow(32, -0.5) * 3 * std::pow(8, -1.5)));
  CHECK(rate_at(noam, 20) == Approx(0.5 * std::pow(32, -0.5) * std::pow(20, -0.5)));
  const auto decay = Schedule::step_decay({.rate = 1.0, .every = 3, .gamma = 0.5});
  CHECK(rate_at(decay, 3) == 1.0);
  CHECK(rate_at(decay, 4) == 0.5);
  CHECK(rate_at(decay, 7) == 0.25);
  const auto later = Schedule::step_decay({.rate = 0.5, .every = 3, .gamma = 0.5, .warmup = 4});
  CHECK(rate_at(later, 1) == 0.125);
  CHECK(rate_at(later, 4) == 0.5);
  CHECK(rate_at(later, 7) == 0.5);
  CHECK(rate_at(later, 8) == 0.25);
  CHECK(rate_at(Schedule(0.3), 12) == 0.3);
  CHECK(rate_at([](const Tensor& step) { return 1.0 / step; }, 4) == 0.25);
  const HostTensor rates = references().tensor("one_cycle.rates");
  const auto cycle = Schedule::one_cycle({.peak = 0.5, .total = steps});
  for (int t = 1; t <= steps; ++t) CHECK(rate_at(cycle, t) == Approx(rates.get(t - 1)).epsilon(1e-12));
}

TEST_CASE("a user writes an optimizer", "[optimizers]") {
  const Optimizer averaged("averaged", 0.1, [](ParameterUpdate& update) {
    const Tensor mean = update.state("mean");
    const Tensor next = mean * 0.5 + update.gradient() * 0.5;
    update.set_state(mean, next);
    update.set_parameter(update.parameter() - sign(next) * update.rate());
  });
  const ir::Graph step = step_for(averaged, small);
  const Tensors values = trained(step, small);
  CHECK(values.at("optimizer.mean.v").numel() == 5);
  // Its ops have the lines of the rule.
  bool found = false;
  for (const ir::ValueId id : ir::all_values(step))
    if (step[id].op->name.value == "sign") found = step[id].loc.to_string().starts_with("optimizers_test.cpp");
  CHECK(found);
  double p = 0.5 * std::sin(1.0), mean = 0;
  for (int t = 1; t <= steps; ++t) {
    mean = 0.5 * mean + 0.5 * (std::cos(0.7 * t) + 0.1 * p);
    p -= 0.1 * (mean > 0 ? 1 : -1);
  }
  CHECK(values.at("a").get(0) == Approx(p).epsilon(1e-12));
}

TEST_CASE("groups have optimizers of their own", "[optimizers]") {
  TrainingOptions options;
  options.groups = {{.name = "matrices", .parameters = lathe::matrices(), .optimizer = Muon{.lr = 0.02}}};
  const Tensors values = trained(step_for(AdamW{.lr = 0.02, .weight_decay = 0.1}, small, options), small);
  // Muon and AdamW update their parameters independently of each other.
  CHECK(distance(values.at("b"), references().tensor("muon.b")) < 1e-10);
  CHECK(distance(values.at("v"), references().tensor("adamw.v")) < 1e-10);
}

TEST_CASE("faults of optimizers are errors", "[optimizers]") {
  const auto user = [](auto rule) { return Optimizer("mine", 0.1, Optimizer::Rule(rule)); };
  CHECK_THAT(error_of(user([](ParameterUpdate&) {})),
             Contains("mine sets no next value of a") && Contains("[optimizer_rule]"));
  CHECK_THAT(error_of(user([](ParameterUpdate& u) { u.state("m"), u.set_parameter(u.parameter()); })),
             Contains("mine sets no next value of the state m of a") && Contains("[optimizer_rule]"));
  CHECK_THAT(error_of(user([](ParameterUpdate& u) { u.set_parameter(u.parameter().sum()); })),
             Contains("the parameter is f64[6, 4], its next value f64[]") && Contains("[optimizer_rule]") &&
                 Contains("optimizers_test.cpp"));
  CHECK_THAT(
      error_of(user([](ParameterUpdate& u) { u.set_parameter(u.parameter()), u.set_parameter(u.parameter()); })),
      Contains("the parameter is set twice"));
  CHECK_THAT(error_of(user([](ParameterUpdate& u) { u.set_state(u.parameter(), u.parameter()); })),
             Contains("which is no state of it"));
  CHECK_THAT(error_of(user([](ParameterUpdate& u) { u.set_state(u.state("m"), u.step()); })),
             Contains("the state m is f64[6, 4], its next value f64[]"));
  CHECK_THAT(error_of(Muon{}), Contains("Muon updates matrices, not v [5]") && Contains("[optimizer_rule]"));
  CHECK_THAT(error_of(Lion{.beta1 = 1}), Contains("Lion: beta1 is 1") && Contains("[optimizer_options]"));
  CHECK_THAT(error_of(Adafactor{.clipping = 0.5}), Contains("Adafactor: clipping is 0.5"));
  CHECK_THAT(error_of(AdamW8bit{.smallest = 0}), Contains("AdamW8bit: smallest is 0"));
  CHECK_THAT(error_of(ScheduleFreeAdamW{.beta1 = 0}), Contains("ScheduleFreeAdamW: beta1 is 0"));
  CHECK_THAT(error_of(SOAP{.frequency = 0}), Contains("SOAP: frequency is 0"));
  CHECK_THAT(error_of(Muon{.iterations = 0}), Contains("Muon: iterations is 0"));
  CHECK_THAT(error_of(SGD{.lr = [](const Tensor& step) { return step.to(f32); }}),
             Contains("the schedule returns f32[], not an f64 scalar") && Contains("[optimizer_options]"));
}
