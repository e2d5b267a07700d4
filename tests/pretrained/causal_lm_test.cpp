#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/grad.h"
#include "frontend/initial_values.h"
#include "frontend/ops/ops.h"
#include "frontend/train/step.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/token_case.h"
#include "tests/support/graphs/source_lines.h"
#include "tests/support/kernels/kernel_store.h"

using namespace lathe;
using test::CaseGraph;
using test::HfCase;
using test::load_in;
using test::tolerance_of;

namespace {

constexpr auto automatic = nn::Dispatch::automatic;

void check_forward(const HfCase& which, DType dtype, ObjectStore& store, nn::Dispatch dispatch = automatic) {
  const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
  CaseGraph c(which, dtype, true);
  c.inputs.dispatch = dispatch;
  const auto states = loaded.model->hidden_states(c.inputs);
  for (std::size_t i = 0; i < states.size(); ++i) c.g.output(fmt::format("hidden.{}", i), states[i]);
  c.g.output("logits", loaded.model->logits(c.inputs));
  c.g.output("loss", loaded.model->loss(c.inputs, c.labels));
  const ir::Graph graph = c.g.finish();
  CHECK(test::without_lines(graph) == std::vector<std::string>{});
  Executable exe = compile(graph, {.parameters = loaded.weights, .cache = &store});
  const SafetensorsFile expected = which.expected();
  const HostTensor* mask = c.values.contains("attention_mask") ? &c.values.at("attention_mask") : nullptr;
  int compared = 0;
  for (const auto& [name, value] : exe.run(c.values)) {
    INFO(which.name << " " << lathe::name(dtype) << " " << name);
    const bool scalar = name == "loss";
    CHECK(test::error_of(value, expected.tensor(name), scalar ? nullptr : mask) <=
          (scalar ? tolerance_of(dtype).loss : tolerance_of(dtype).forward));
    ++compared;
  }
  CHECK(compared == static_cast<int>(states.size()) + 2);
}

void check_gradients(const HfCase& which, DType dtype, ObjectStore& store, nn::Dispatch dispatch = automatic) {
  const pretrained::Pretrained loaded = load_in(which, dtype);
  CaseGraph c(which, dtype, true);
  c.inputs.dispatch = dispatch;
  const Tensor loss = loaded.model->loss(c.inputs, c.labels);
  std::vector<Tensor> wanted;
  const std::vector<nn::Parameter> parameters = loaded.model->parameters();
  for (const nn::Parameter& parameter : parameters) wanted.push_back(parameter.in(c.g));
  const std::vector<Tensor> gradients = grad(loss, wanted);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    c.g.output(loaded.places.at(parameters[i].name()).tensor, gradients[i]);
  Executable exe = compile(c.g.finish(), {.parameters = loaded.weights, .cache = &store});
  const Tensors found = exe.run(c.values);
  const SafetensorsFile expected = which.expected();
  int compared = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("grad.")) continue;
    INFO(which.name << " " << name);
    CHECK(test::error_of(found.at(name.substr(5)), expected.tensor(name)) <= tolerance_of(dtype).grad);
    ++compared;
  }
  CHECK(compared == 3);
  CHECK(which.grad_norms.size() == found.size());
  for (const auto& [name, norm] : which.grad_norms) {
    double squares = 0;
    const HostTensor& gradient = found.at(name);
    for (std::int64_t i = 0; i < gradient.numel(); ++i) squares += gradient.get(i) * gradient.get(i);
    INFO(which.name << " " << name);
    // A key bias adds one number to all scores of a row, so its gradient is zero except for rounding.
    CHECK(std::abs(std::sqrt(squares) - norm) <= tolerance_of(dtype).grad * std::max(norm, 1e-2));
  }
}

void check_training(const HfCase& which, DType dtype, ObjectStore& store, nn::Dispatch dispatch = automatic) {
  pretrained::Pretrained loaded = load_in(which, dtype);
  CaseGraph c(which, dtype, true);
  c.inputs.dispatch = dispatch;
  const test::HfTraining t = test::hf_training();
  const ir::Graph step = training_step(
      c.g, loaded.model->loss(c.inputs, c.labels),
      AdamW{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .eps = t.eps, .weight_decay = t.weight_decay});
  Executable exe = compile(step, {.parameters = loaded.weights, .cache = &store});
  for (auto& [name, value] : initial_values(step, {}, 1))
    if (name.starts_with("optimizer.")) loaded.weights.set(name, std::move(value));
  const HostTensor want = which.expected().tensor("train_loss");
  HostTensor got(f64, want.shape());
  for (std::int64_t i = 0; i <= t.steps; ++i) got.set(i, exe.run(c.values).at("loss").get(0));
  INFO(which.name);
  CHECK(want.numel() == t.steps + 1);
  CHECK(test::error_of(got, want) <= tolerance_of(dtype).train);
}

/// Checks everything in every fourth case: kernels shared by its graphs are compiled once.
void check_cases(std::size_t first) {
  const auto cases = test::hf_cases("causal-lm");
  CHECK(cases.size() == 19);
  for (std::size_t i = first; i < cases.size(); i += 4)
    for (const DType dtype : {f64, f32}) {
      test::KernelStore store;
      check_forward(cases[i], dtype, store);
      check_gradients(cases[i], dtype, store);
      check_training(cases[i], dtype, store);
    }
}

}  // namespace

// Hidden states, logits, loss, gradients and 20 training steps, in parts that run in parallel.
TEST_CASE("causal language models match transformers, part 1") { check_cases(0); }
TEST_CASE("causal language models match transformers, part 2") { check_cases(1); }
TEST_CASE("causal language models match transformers, part 3") { check_cases(2); }
TEST_CASE("causal language models match transformers, part 4") { check_cases(3); }

TEST_CASE("causal language models: dense and sparse experts give the same tokens") {
  int compared = 0;
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (which.name != "mixtral") continue;
    for (const nn::Dispatch dispatch : {nn::Dispatch::dense, nn::Dispatch::sparse})
      for (const DType dtype : {f64, f32}) {
        test::KernelStore store;
        check_forward(which, dtype, store, dispatch);
        check_gradients(which, dtype, store, dispatch);
        check_training(which, dtype, store, dispatch);
        ++compared;
      }
  }
  CHECK(compared == 4);
}

TEST_CASE("causal language models: inputs too short for position scaling") {
  int compared = 0;
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (!which.prefix) continue;
    const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
    CaseGraph c(which, f64, false);
    c.g.output("logits", loaded.model->logits(c.inputs));
    Executable exe = compile(c.g.finish(), {.parameters = loaded.weights, .cache = test::shared_kernels()});
    const HostTensor ids = which.inputs().tensor("input_ids");
    HostTensor prefix(i64, {ids.shape()[0], *which.prefix});
    for (std::int64_t b = 0; b < ids.shape()[0]; ++b)
      for (std::int64_t t = 0; t < *which.prefix; ++t)
        prefix.set_int(b * *which.prefix + t, ids.get_int(b * ids.shape()[1] + t));
    INFO(which.name);
    CHECK(test::error_of(exe.run({{"input_ids", prefix}}).at("logits"), which.expected().tensor("prefix_logits")) <=
          1e-10);
    ++compared;
  }
  CHECK(compared == 3);
}
