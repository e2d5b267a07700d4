#include "frontend/train/loss_scaling.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "frontend/train/training.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/verifier.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

/// The mean of (x w)^2 for one matrix.
ir::Graph model() {
  return parse(R"(graph @m(input %x: f32[4, 3], parameter %w: f32[3, 2]) {
  %1 = matmul %x, %w
  %2 = square %1
  %3 = mean %2 {dims=[0, 1]}
  output "loss" %3
})");
}

TrainingOptions in_f16(LossScaling scaling = {}) {
  TrainingOptions options;
  options.precision = f16;
  options.loss_scaling = scaling;
  return options;
}

/// A step and its states across runs.
class Run {
 public:
  explicit Run(const TrainingOptions& options, const Optimizer& optimizer = AdamW{.lr = 0.01})
      : step_(training_step(model(), "loss", optimizer, options)), arguments_(random_arguments(step_, {}, 9)) {
    verify(step_);
    for (const ValueId id : step_.arguments())
      if (const Node& node = step_[id]; node.op == &ops::state)
        arguments_.at(node.name) = HostTensor(node.type.dtype, node.type.shape.evaluate({}));
  }

  /// Runs once with inputs of about this magnitude.
  Tensors with_inputs(double size) {
    for (int i = 0; i < 12; ++i) arguments_.at("x").set(i, size * (i % 5 - 2));
    Tensors results = interpret(step_, arguments_, {.round = true});
    for (const Update& update : step_.updates) {
      const std::string& name = step_[update.state].name;
      arguments_.at(name) = results.at(name);
    }
    return results;
  }
  const Tensors& arguments() const { return arguments_; }

 private:
  ir::Graph step_;
  Tensors arguments_;
};

// Inputs within the range of f16, and inputs whose gradients overflow at the initial scale, 65536.
constexpr double fine = 0.01, too_large = 30;

}  // namespace

TEST_CASE("loss scaling: a step with overflowing gradients changes only the scale", "[loss_scaling]") {
  Run run(in_f16());
  CHECK(run.with_inputs(fine).at("skipped").get(0) == 0);
  const Tensors before = run.arguments();
  const Tensors results = run.with_inputs(too_large);
  CHECK(results.at("skipped").get(0) == 1);
  CHECK(results.at("loss_scale").get(0) == 65536);
  CHECK(std::isfinite(results.at("loss").get(0)));
  for (const auto& [name, value] : run.arguments()) {
    INFO(name);
    if (name == "x") continue;
    if (name == "optimizer.loss_scale.exponent")
      CHECK(value.get_int(0) == -1);
    else if (name == "optimizer.loss_scale.good_steps")
      CHECK(value.get_int(0) == 0);
    else
      CHECK(value.same_bits(before.at(name)));
  }
}

TEST_CASE("loss scaling: the scale halves until gradients fit, then training continues", "[loss_scaling]") {
  Run run(in_f16());
  double scale = 65536;
  int skipped = 0;
  for (int i = 0; i < 20; ++i) {
    const Tensors results = run.with_inputs(too_large);
    CHECK(results.at("loss_scale").get(0) == scale);
    if (results.at("skipped").get(0) == 0) break;
    scale /= 2;
    ++skipped;
  }
  CHECK(skipped > 1);
  CHECK(skipped < 20);
  CHECK(run.arguments().at("optimizer.step").get_int(0) == 1);
}

TEST_CASE("loss scaling: the scale doubles after a fixed number of consecutive good steps", "[loss_scaling]") {
  Run run(in_f16({.start = 1024, .growth_interval = 3}));
  const auto scale_of = [&](double inputs) { return run.with_inputs(inputs).at("loss_scale").get(0); };
  CHECK(scale_of(fine) == 1024);
  CHECK(scale_of(fine) == 1024);
  CHECK(scale_of(1e6) == 1024);  // skipped: the count restarts
  for (int i = 0; i < 3; ++i) CHECK(scale_of(fine) == 512);
  CHECK(scale_of(fine) == 1024);
  CHECK(run.arguments().at("optimizer.loss_scale.good_steps").get_int(0) == 1);
}

TEST_CASE("loss scaling: an update matches f32, small gradients survive", "[loss_scaling]") {
  TrainingOptions plain;
  plain.clip_norm = 1e-3;
  TrainingOptions scaled = in_f16();
  scaled.clip_norm = 1e-3;
  // Gradients of about 1e-8, which underflow in f16.
  for (const double inputs : {1e-1, 1e-4}) {
    Run wide(plain, SGD{.lr = 1e3}), narrow(scaled, SGD{.lr = 1e3});
    const HostTensor start = wide.arguments().at("w");
    const double norm = wide.with_inputs(inputs).at("grad_norm").get(0);
    CHECK(narrow.with_inputs(inputs).at("grad_norm").get(0) == Approx(norm).epsilon(5e-3));
    for (int i = 0; i < 6; ++i) {
      const double moved = wide.arguments().at("w").get(i) - start.get(i);
      CHECK(narrow.arguments().at("w").get(i) - start.get(i) == Approx(moved).epsilon(2e-2).margin(2e-7));
    }
  }
}

TEST_CASE("loss scaling: an overflow during accumulation discards only its own update", "[loss_scaling]") {
  TrainingOptions options = in_f16();
  options.accumulate = 2;
  Run run(options);
  const HostTensor start = run.arguments().at("w");
  CHECK(run.with_inputs(too_large).at("skipped").get(0) == 0);  // no update was due
  CHECK(run.with_inputs(fine).at("skipped").get(0) == 1);
  CHECK(run.arguments().at("w").same_bits(start));
  CHECK(run.arguments().at("optimizer.loss_scale.exponent").get_int(0) == -1);
  CHECK(run.arguments().at("optimizer.accumulated.w").get(0) == 0);
  run.with_inputs(fine);
  CHECK(run.with_inputs(fine).at("skipped").get(0) == 0);
  CHECK_FALSE(run.arguments().at("w").same_bits(start));
  CHECK(run.arguments().at("optimizer.step").get_int(0) == 1);
}

TEST_CASE("mixed precision training in bf16 has no scale, and keeps parameters and moments in f32",
          "[loss_scaling]") {
  TrainingOptions options;
  options.precision = bf16;
  const ir::Graph step = training_step(model(), "loss", AdamW{}, options);
  CHECK_FALSE(step.find_argument("optimizer.loss_scale.exponent").valid());
  for (const char* name : {"w", "optimizer.m.w", "optimizer.v.w"})
    CHECK(step[step.find_argument(name)].type.dtype == f32);
  CHECK_THAT(text(step), Contains("matmul %1, %2 : bf16[4, 2]"));
  for (const Output& output : step.outputs) CHECK(output.name != "skipped");
}

TEST_CASE("mixed precision training: errors", "[loss_scaling]") {
  for (const LossScaling& wrong :
       {LossScaling{.start = 0}, LossScaling{.start = std::numeric_limits<double>::infinity()},
        LossScaling{.growth_interval = 0}})
    CHECK_THAT(error_text([&] { training_step(model(), "loss", SGD{}, in_f16(wrong)); }),
               Contains("[train_options]"));
  TrainingOptions options;
  options.precision = i64;
  CHECK_THAT(error_text([&] { training_step(model(), "loss", SGD{}, options); }), Contains("[mixed_precision]"));
  GraphBuilder builder("g");
  const Value loss = builder.argument(ops::parameter, "p", f32, {});
  CHECK_THAT(error_text([&] { add_training_step(loss, SGD{}, in_f16()); }), Contains("[train_options]"));
}
