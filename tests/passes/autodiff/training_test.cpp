#include "frontend/train/training.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/verifier.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

using Vector = std::vector<double>;

/// loss = mean over rows of (x w + b - y)^2: one matrix, one bias.
ir::Graph regression() {
  return parse(
      R"(graph @regression(input %x: f64[n, 3], input %y: f64[n], parameter %w: f64[3, 1], parameter %b: f64[1]) {
  %1 = matmul %x, %w
  %2 = add %1, %b
  %3 = squeeze %2 {dim=1}
  %4 = sub %3, %y
  %5 = mul %4, %4
  %6 = mean %5 {dims=[0]}
  output "loss" %6
})");
}

/// The same computed by hand: the loss and its gradient at p = {w0, w1, w2, b}, over rows first .. last.
struct ByHand {
  HostTensor x, y;

  double loss(const Vector& p, Vector& grad, std::int64_t first, std::int64_t last) const {
    double total = 0;
    grad.assign(4, 0);
    const double n = static_cast<double>(last - first);
    for (std::int64_t i = first; i < last; ++i) {
      double error = p[3] - y.get(i);
      for (int k = 0; k < 3; ++k) error += x.get(3 * i + k) * p[static_cast<std::size_t>(k)];
      total += error * error / n;
      for (int k = 0; k < 3; ++k) grad[static_cast<std::size_t>(k)] += 2 * error * x.get(3 * i + k) / n;
      grad[3] += 2 * error / n;
    }
    return total;
  }
  double loss(const Vector& p, Vector& grad) const { return loss(p, grad, 0, y.numel()); }
};

/// Returns the arguments of a step: the given tensors, and zeros for every state.
Tensors with_states(const ir::Graph& step, const Tensors& given) {
  Tensors arguments = given;
  for (const ValueId id : step.arguments()) {
    const Node& node = step[id];
    if (node.op == &ops::state && !arguments.count(node.name))
      arguments.emplace(node.name, HostTensor(node.type.dtype, node.type.shape.evaluate({})));
  }
  return arguments;
}

/// Runs the step once and stores its updates in `arguments`.
Tensors advance(const ir::Graph& step, Tensors& arguments) {
  Tensors results = interpret(step, arguments);
  for (const Update& update : step.updates) {
    const std::string& name = step[update.state].name;
    arguments.at(name) = results.at(name);
  }
  return results;
}

struct Problem {
  Tensors given;
  ByHand by_hand;
  Vector start;
};

Problem make_problem(std::int64_t rows) {
  Tensors given = random_arguments(regression(), {{"n", rows}}, 21);
  Vector start;
  for (int k = 0; k < 3; ++k) start.push_back(given.at("w").get(k));
  start.push_back(given.at("b").get(0));
  ByHand by_hand{given.at("x"), given.at("y")};
  return {given, by_hand, start};
}

/// Trains with the graph and with `update(p, grad, t)`, and compares loss, norm and parameters at every step.
void compare(const Optimizer& optimizer, const TrainingOptions& options,
             const std::function<void(Vector& p, Vector& grad, double t)>& update) {
  const ir::Graph step = training_step(regression(), "loss", optimizer, options);
  verify(step);
  const Problem problem = make_problem(5);
  Tensors arguments = with_states(step, problem.given);
  Vector p = problem.start, grad;
  for (int t = 1; t <= 6; ++t) {
    const double loss = problem.by_hand.loss(p, grad);
    double norm = 0;
    for (const double g : grad) norm += g * g;
    update(p, grad, t);
    const Tensors results = advance(step, arguments);
    CHECK(results.at("loss").get(0) == Approx(loss).epsilon(1e-12));
    CHECK(results.at("grad_norm").get(0) == Approx(std::sqrt(norm)).epsilon(1e-12));
    CHECK(arguments.at("optimizer.step").get_int(0) == t);
    for (int k = 0; k < 3; ++k)
      CHECK(arguments.at("w").get(k) == Approx(p[static_cast<std::size_t>(k)]).epsilon(1e-12));
    CHECK(arguments.at("b").get(0) == Approx(p[3]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("SGD with momentum, Nesterov and weight decay matches a reference loop", "[training]") {
  for (const bool nesterov : {false, true})
    for (const double momentum : {0.0, 0.9}) {
      Vector buffer(4, 0);
      const SGD sgd{.lr = 0.05, .momentum = momentum, .weight_decay = 0.01, .nesterov = nesterov};
      compare(sgd, {}, [&](Vector& p, Vector& grad, double) {
        for (std::size_t k = 0; k < 4; ++k) {
          const double g = grad[k] + 0.01 * p[k];
          buffer[k] = momentum * buffer[k] + g;
          p[k] -= 0.05 * (nesterov ? g + momentum * buffer[k] : buffer[k]);
        }
      });
    }
}

TEST_CASE("Adam matches a reference loop: decay is added to the gradient", "[training]") {
  Vector m(4, 0), v(4, 0);
  compare(Adam{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}, {},
          [&](Vector& p, Vector& grad, double t) {
            for (std::size_t k = 0; k < 4; ++k) {
              const double g = grad[k] + 0.1 * p[k];
              m[k] = 0.8 * m[k] + 0.2 * g;
              v[k] = 0.95 * v[k] + 0.05 * g * g;
              const double m_hat = m[k] / (1 - std::pow(0.8, t)), v_hat = v[k] / (1 - std::pow(0.95, t));
              p[k] -= 0.1 * m_hat / (std::sqrt(v_hat) + 1e-3);
            }
          });
}

TEST_CASE("AdamW matches a reference loop: decay shrinks the parameter, except in groups without decay",
          "[training]") {
  for (const bool grouped : {false, true}) {
    Vector m(4, 0), v(4, 0);
    TrainingOptions options;
    if (grouped) options.decayed = matrices();
    compare(AdamW{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.2}, options,
            [&](Vector& p, Vector& grad, double t) {
              for (std::size_t k = 0; k < 4; ++k) {
                const double g = grad[k];
                m[k] = 0.8 * m[k] + 0.2 * g;
                v[k] = 0.95 * v[k] + 0.05 * g * g;
                const double m_hat = m[k] / (1 - std::pow(0.8, t)), v_hat = v[k] / (1 - std::pow(0.95, t));
                if (!grouped || k < 3) p[k] *= 1 - 0.1 * 0.2;
                p[k] -= 0.1 * m_hat / (std::sqrt(v_hat) + 1e-3);
              }
            });
  }
}

TEST_CASE("clipping by the global norm, above and below the limit", "[training]") {
  for (const double limit : {0.5, 1e6}) {
    TrainingOptions options;
    options.clip_norm = limit;
    compare(SGD{.lr = 0.05}, options, [&](Vector& p, Vector& grad, double) {
      double norm = 0;
      for (const double g : grad) norm += g * g;
      const double factor = std::min(1.0, limit / (std::sqrt(norm) + 1e-6));
      for (std::size_t k = 0; k < 4; ++k) p[k] -= 0.05 * factor * grad[k];
    });
  }
}

TEST_CASE("accumulated micro-batches match the large batch", "[training]") {
  const AdamW adamw{.lr = 0.1, .eps = 1e-3};
  TrainingOptions big, small;
  big.clip_norm = small.clip_norm = 0.7;
  small.accumulate = 3;
  const ir::Graph whole = training_step(regression(), "loss", adamw, big);
  const ir::Graph parts = training_step(regression(), "loss", adamw, small);
  verify(parts);
  const Problem problem = make_problem(6);
  Tensors of_whole = with_states(whole, problem.given), of_parts = with_states(parts, problem.given);
  for (int t = 1; t <= 3; ++t) {
    const Tensors wanted = advance(whole, of_whole);
    for (int micro = 0; micro < 3; ++micro) {
      const HostTensor before = of_parts.at("w");
      of_parts.at("x") = HostTensor(f64, {2, 3});
      of_parts.at("y") = HostTensor(f64, {2});
      for (int i = 0; i < 6; ++i) of_parts.at("x").set(i, problem.given.at("x").get(6 * micro + i));
      for (int i = 0; i < 2; ++i) of_parts.at("y").set(i, problem.given.at("y").get(2 * micro + i));
      const Tensors found = advance(parts, of_parts);
      CHECK(of_parts.at("optimizer.step").get_int(0) == (micro == 2 ? t : t - 1));
      CHECK(before.same_bits(of_parts.at("w")) == (micro < 2));
      if (micro == 2) CHECK(found.at("grad_norm").get(0) == Approx(wanted.at("grad_norm").get(0)).epsilon(1e-12));
    }
    for (const char* name : {"w", "b", "optimizer.m.w", "optimizer.v.b"})
      CHECK(distance(of_whole.at(name), of_parts.at(name)) < 1e-12);
  }
}

TEST_CASE("the learning rate of a step depends on the step number", "[training]") {
  const auto schedule = Schedule::inverse_sqrt({.scale = 0.1, .warmup = 3});
  const ir::Graph step = training_step(regression(), "loss", Adam{.lr = schedule});
  Tensors arguments = with_states(step, make_problem(4).given);
  for (int t = 1; t <= 5; ++t)
    CHECK(advance(step, arguments).at("learning_rate").get(0) ==
          Approx(0.1 * std::min(std::pow(t, -0.5), t * std::pow(3, -1.5))).epsilon(1e-14));
}

TEST_CASE("16-bit parameters keep f32 moments", "[training]") {
  GraphBuilder b("g");
  const Value w = b.argument(ops::parameter, "w", bf16, {4});
  add_training_step(cast(sum(mul(w, w)), f32), AdamW{}, {});
  const ir::Graph step = b.finish();
  verify(step);
  CHECK(step[step.find_argument("optimizer.m.w")].type.dtype == f32);
  CHECK(step[step.updates.back().state].type.dtype == step[step.updates.back().value].type.dtype);
}

TEST_CASE("random states advance by themselves, once per step", "[training]") {
  const auto build = [](bool by_hand) {
    GraphBuilder b("g");
    const Value w = b.argument(ops::parameter, "w", f64, {8});
    const Value rng = b.argument(ops::state, "rng", i64, {2});
    if (by_hand) b.update(rng, ir::add(rng, literal(b, {2}, {0, 5}, i64)));
    add_training_step(sum(dropout(mul(w, w), rng, 0.5)), SGD{});
    return b.finish();
  };
  for (const bool by_hand : {false, true}) {
    const ir::Graph step = build(by_hand);
    Tensors arguments = with_states(step, {{"w", HostTensor::from({8}, Vector(8, 1), f64)}});
    arguments.at("rng").set_int(0, 42);
    advance(step, arguments);
    advance(step, arguments);
    CHECK(arguments.at("rng").get_int(0) == 42);
    CHECK(arguments.at("rng").get_int(1) == (by_hand ? 10 : 2));
  }
}

TEST_CASE("parameters that the loss does not use are unchanged and reported", "[training]") {
  GraphBuilder b("g");
  const Value w = b.argument(ops::parameter, "w", f64, {2});
  b.argument(ops::parameter, "idle", f64, {2});
  const Value frozen = b.argument(ops::parameter, "frozen", f64, {2});
  std::vector<std::string> notes;
  TrainingOptions options;
  options.trainable = names_without({"frozen"});
  options.note = [&](std::string_view note) { notes.emplace_back(note); };
  add_training_step(sum(mul(w, frozen)), SGD{}, options);
  const ir::Graph step = b.finish();
  CHECK(notes ==
        std::vector<std::string>{"trains 1 of 3 parameters, 2 of 6 numbers; not chosen by `trainable`: frozen; "
                                 "not used by the loss: idle"});
  std::vector<std::string> updated;
  for (const Update& update : step.updates) updated.push_back(step[update.state].name);
  CHECK(updated == std::vector<std::string>{"optimizer.step", "w"});
}

TEST_CASE("the gradient norm is an output unless disabled", "[training]") {
  const auto outputs = [](const ir::Graph& step) {
    std::vector<std::string> names;
    for (const Output& output : step.outputs) names.push_back(output.name);
    return names;
  };
  for (const double clip : {0.0, 0.1}) {
    const ir::Graph with = training_step(regression(), "loss", SGD{}, {.clip_norm = clip});
    const ir::Graph without = training_step(regression(), "loss", SGD{}, {.clip_norm = clip, .report_norm = false});
    CHECK(outputs(with) == std::vector<std::string>{"loss", "grad_norm", "learning_rate"});
    CHECK(outputs(without) == std::vector<std::string>{"loss", "learning_rate"});
    const Problem problem = make_problem(5);
    Tensors a = with_states(with, problem.given), b = with_states(without, problem.given);
    advance(with, a), advance(without, b);
    CHECK(a.at("w").same_bits(b.at("w")));
    CHECK(!a.at("w").same_bits(problem.given.at("w")));
  }
}

TEST_CASE("errors of training steps", "[training]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[3], parameter %w: f64[3]) {
  %1 = mul %x, %w
  %2 = sum %x {dims=[0]}
  output "vector" %1
  output "constant" %2
})");
  const auto error = [&](std::string_view loss, const TrainingOptions& options) {
    return error_text([&] { training_step(graph, loss, SGD{}, options); });
  };
  CHECK_THAT(error("lost", {}), Contains("no output named lost") && Contains("[train_loss]"));
  CHECK_THAT(error("vector", {}), Contains("f64[3], not a float scalar") && Contains("[train_loss]"));
  CHECK_THAT(error("constant", {}), Contains("depends on no trainable parameter") && Contains("[train_parameters]"));
  TrainingOptions none;
  none.accumulate = 0;
  CHECK_THAT(error("constant", none), Contains("[train_options]"));
  CHECK_THAT(error_text([] { Schedule::warmup_cosine({.peak = 1, .warmup = 10, .total = 10}); }),
             Contains("[schedule_steps]"));
}
