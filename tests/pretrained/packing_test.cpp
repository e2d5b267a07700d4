#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/initial_values.h"
#include "frontend/train/step.h"
#include "models/pretrained/token_loss.h"
#include "models/text/dataset/token_batches.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/token_case.h"
#include "tests/support/kernels/kernel_store.h"

/// Packing and accumulation must not change the losses and gradients of the texts.
using namespace lathe;

namespace {

pretrained::Pretrained tiny(const std::string& name) {
  for (const test::HfCase& which : test::hf_cases("causal-lm"))
    if (which.name == name) return test::load_in(which, f64);
  throw InternalError("no case " + name);
}

/// Texts of different lengths, with tokens that are in the vocabulary of every model.
std::vector<Example> texts(std::int64_t count) {
  std::vector<Example> made;
  for (std::int64_t i = 0; i < count; ++i) {
    Example example;
    for (std::int64_t k = 0; k < 3 + i * 5 % 11; ++k) {
      example.ids.push_back(static_cast<TokenId>((i * 31 + k * k * 7 + 3) % 90));
      example.learned.push_back(k > i % 2);
    }
    made.push_back(example);
  }
  return made;
}

/// Returns the loss and all parameters after one update on all examples, by SGD, whose update is the gradient.
Tensors after_update(const std::string& name, const BatchOptions& options, AttentionFusion fusion) {
  pretrained::Pretrained model = tiny(name);
  const Graph g = token_loss(*model.model, "train", Dim("B"), Dim("T"), options.pack, f64);
  const ir::Graph step = training_step(g.finish(), "loss", SGD{.lr = 0.5}, {.accumulate = options.accumulate});
  CompileOptions compiling{.parameters = model.weights, .cache = test::shared_kernels()};
  compiling.lower.attention = fusion;
  Executable exe = compile(step, compiling);
  model.weights.set(initial_states(step, 1));
  const TokenBatches batches(texts(8), options);
  double loss = 0;
  for (std::int64_t i = 0; i < options.accumulate; ++i)
    loss += exe.run(batches.training(i)).at("loss").get(0) / static_cast<double>(options.accumulate);
  Tensors found{{"loss", HostTensor::scalar(loss, f64)}};
  for (const nn::Parameter& parameter : model.model->parameters())
    found.emplace(parameter.name(), model.weights.get(parameter.name()));
  return found;
}

void check_same(const Tensors& got, const Tensors& want) {
  for (const auto& [name, value] : want) {
    INFO(name);
    CHECK(test::error_of(got.at(name), value) <= 1e-9);
  }
}

}  // namespace

TEST_CASE("accumulation over ragged batches matches one large batch in loss and gradient") {
  const Tensors want = after_update("llama", {.context = 64, .batch = 8}, AttentionFusion::automatic);
  check_same(after_update("llama", {.context = 64, .batch = 2, .accumulate = 4}, AttentionFusion::automatic), want);
  check_same(after_update("llama", {.context = 64, .batch = 1, .accumulate = 8}, AttentionFusion::automatic), want);
}

TEST_CASE("packed texts match unpacked rows in loss and gradient, with fused attention") {
  for (const std::string name : {"llama", "gpt2", "gemma3", "mistral"}) {
    INFO(name);
    const Tensors want = after_update(name, {.context = 16, .batch = 8}, AttentionFusion::automatic);
    const std::int64_t rows = TokenBatches(texts(8), {.context = 16, .pack = true}).rows();
    CHECK(rows < 8);
    for (const AttentionFusion fusion : {AttentionFusion::required, AttentionFusion::off})
      check_same(after_update(name, {.context = 16, .batch = rows, .pack = true}, fusion), want);
  }
}

TEST_CASE("if the rotation depends on the length, losses and gradients do not depend on batching or packing") {
  // Texts of 3 to 13 tokens; the rotation changes at 12. Rows are padded to 16.
  for (const std::string name : {"phi3_longrope_window", "llama_rope_dynamic"}) {
    INFO(name);
    const auto fused = AttentionFusion::automatic;
    const Tensors want = after_update(name, {.context = 16, .batch = 1, .accumulate = 8, .lengths = true}, fused);
    check_same(after_update(name, {.context = 16, .batch = 8, .lengths = true}, fused), want);
    const std::int64_t rows = TokenBatches(texts(8), {.context = 32, .pack = true}).rows();
    CHECK(rows < 8);
    check_same(after_update(name, {.context = 32, .batch = rows, .pack = true}, fused), want);
  }
}

TEST_CASE("a weighted loss equals the mean if the weight is one over the number of labels") {
  const pretrained::Pretrained model = tiny("llama");
  const Shape shape{Dim("B"), Dim("T")};
  Graph g{"loss"};
  const pretrained::TokenInputs inputs{.ids = g.input("input_ids", i64, shape), .dtype = f64};
  const Tensor labels = g.input("labels", i64, shape), weight = g.input("weight", f64, {});
  g.output("loss", model.model->loss(inputs, labels, weight));
  g.output("mean", model.model->loss(inputs, labels));
  const TokenBatches batches(texts(8), {.context = 16, .batch = 8});
  const Tensors got =
      compile(g.finish(), {.parameters = model.weights, .cache = test::shared_kernels()}).run(batches.training(0));
  CHECK(got.at("loss").get(0) == Approx(got.at("mean").get(0)).epsilon(1e-12));
}
