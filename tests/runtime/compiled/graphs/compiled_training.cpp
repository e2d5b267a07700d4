#include <catch2/catch.hpp>

#include "frontend/initial_values.h"
#include "frontend/train/training.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/kernel_store.h"

/// Compiled training steps: the same bits for any number of threads and in every run, the same values on every target
/// and in the interpreter, one compilation for all batch and sequence sizes.
using namespace lathe;
using lathe::test::check_close;

namespace {

struct Model {
  ir::Graph step;
  std::vector<Initializer> initializers;
  std::vector<std::string> token_inputs;
};

struct Setting {
  DType dtype = f32;
  Optimizer optimizer = AdamW{.lr = 1e-3};
  DType precision = f32;
  LossScaling loss_scaling = {};
};

template <class Config>
Model training(const Config& config, const Setting& setting, std::vector<std::string> token_inputs) {
  models::LossGraph forward = models::loss_graph(config);
  return {training_step(forward.graph, "loss", setting.optimizer,
                        {.clip_norm = 1.0, .precision = setting.precision, .loss_scaling = setting.loss_scaling}),
          std::move(forward.initializers), std::move(token_inputs)};
}

Model gpt(const Setting& setting = {}) {
  return training(lathe::test::small_gpt(setting.dtype), setting, {"tokens"});
}

Model llama(const Setting& setting = {}) {
  return training(lathe::test::small_llama(setting.dtype), setting, {"tokens"});
}

Model encoder_decoder(const Setting& setting = {}) {
  return training(lathe::test::small_encoder_decoder(setting.dtype), setting, {"src", "tgt"});
}

Tensors tokens(const Model& model, std::int64_t batch, std::int64_t length) {
  Tensors inputs;
  for (const std::string& name : model.token_inputs) {
    HostTensor& values = inputs.set(name, HostTensor(i64, {batch, length + 1}));
    for (std::int64_t i = 0; i < values.numel(); ++i) values.set_int(i, i * 5 % 31);
  }
  return inputs;
}

const std::vector<std::pair<std::int64_t, std::int64_t>> batches = {{3, 20}, {5, 9}, {8, 33}};

/// Runs a training step for each batch from one start. Returns the last results and every state.
Tensors train(const Model& model, CompileOptions options) {
  if (!options.cache) options.cache = lathe::test::shared_kernels();
  Executable executable = compile(model.step, options);
  executable.parameters().set(initial_values(model.step, model.initializers, 7));
  Tensors results;
  for (const auto& [batch, length] : batches) results = executable.run(tokens(model, batch, length));
  for (const auto& [name, value] : executable.parameters().values()) results.insert_or_assign(name, value);
  return results;
}

void check_same_bits(const Model& model) {
  lathe::test::KernelStore store;
  const Tensors once = train(model, {.threads = 1, .cache = &store});
  for (const int threads : {1, 2, 3, 7, 16})
    for (const auto& [name, value] : train(model, {.threads = threads, .cache = &store})) {
      INFO(name << " with " << threads << " threads");
      CHECK(value.same_bits(once.at(name)));
    }
}

/// Runs the same training in the interpreter, with the values from step to step as arguments.
Tensors interpreted_training(const Model& model) {
  Tensors states = initial_values(model.step, model.initializers, 7), results;
  for (const auto& [batch, length] : batches) {
    Tensors arguments = states;
    for (auto& [name, value] : tokens(model, batch, length)) arguments.insert_or_assign(name, value);
    results = ir::interpret(model.step, arguments);
    for (auto& [name, value] : states)
      if (const auto at = results.find(name); at != results.end()) value = at->second;
  }
  return results;
}

}  // namespace

TEST_CASE("training gives the same bits in every run and on any number of threads") {
  check_same_bits(gpt());
  check_same_bits(llama());
  check_same_bits(encoder_decoder());
}

TEST_CASE("training gives the same values on every target") {
  // Adam would amplify gradients that are zero except for rounding, such as those of key biases.
  const Setting setting{.optimizer = SGD{.lr = 0.1, .momentum = 0.9}};
  for (const Model& model : {gpt(setting), llama(setting), encoder_decoder(setting)}) {
    const Tensors host = train(model, {.threads = 2});
    for (const char* target : {"x86-64-v2", "x86-64-v3"}) {
      INFO(target);
      check_close(train(model, {.target = Target::named(target), .threads = 2}), host, 1e-5);
    }
  }
}

TEST_CASE("one compilation serves several batch and sequence sizes, matching the interpreter") {
  for (const Model& model : {gpt({.dtype = f64}), encoder_decoder({.dtype = f64})})
    check_close(train(model, {.threads = 2}), interpreted_training(model), 1e-8);
}

TEST_CASE("training in mixed precision gives the same bits in every run and on any number of threads") {
  check_same_bits(gpt({.precision = bf16}));
  check_same_bits(llama({.precision = f16}));
}

TEST_CASE("training in mixed precision: matches the interpreter, on every target, attention fused or not") {
  for (const auto& [precision, tolerance] : {std::pair{bf16, 1.6e-2}, std::pair{f16, 2e-3}}) {
    const Setting setting{.optimizer = SGD{.lr = 0.1, .momentum = 0.9}, .precision = precision};
    for (const Model& model : {gpt(setting), llama(setting)}) {
      INFO(lathe::name(precision));
      const Tensors host = train(model, {.threads = 2});
      check_close(host, interpreted_training(model), tolerance);
      check_close(train(model, {.target = Target::named("x86-64-v3"), .threads = 2}), host, tolerance);
      check_close(train(model, {.threads = 2, .lower = {.attention = AttentionFusion::off}}), host, tolerance);
    }
  }
}

TEST_CASE("training in f16 skips steps that overflow, and resumes from its states bit for bit") {
  const Model model = gpt({.precision = f16, .loss_scaling = {.start = 0x1p30, .growth_interval = 2}});
  lathe::test::KernelStore store;
  const auto start = [&] { return compile(model.step, {.threads = 2, .cache = &store}); };
  Executable straight = start();
  straight.parameters().set(initial_values(model.step, model.initializers, 7));
  int skipped = 0, taken = 0;
  for (int i = 0; i < 24; ++i) {
    Executable resumed = start();
    resumed.parameters().set(straight.parameters().values());
    const HostTensor before = straight.parameters().get("optimizer.step");
    const Tensors results = straight.run(tokens(model, 3, 20)), again = resumed.run(tokens(model, 3, 20));
    const bool skips = results.at("skipped").get(0) != 0;
    (skips ? skipped : taken) += 1;
    CHECK(straight.parameters().get("optimizer.step").same_bits(before) == skips);
    for (const auto& [name, value] : results) CHECK(again.at(name).same_bits(value));
    for (const auto& [name, value] : straight.parameters().values())
      CHECK(resumed.parameters().get(name).same_bits(value));
  }
  CHECK(skipped > 5);
  CHECK(taken > 5);
}
