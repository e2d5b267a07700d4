#include <catch2/catch.hpp>

#include <cmath>

#include "frontend/generation/cached_lm.h"
#include "frontend/pretrained/pretrained.h"
#include "frontend/pretrained/seq2seq/seq2seq_lm.h"
#include "ir/support/error.h"
#include "runtime/executable.h"
#include "tests/pretrained/token_case.h"
#include "tests/runtime/files_scratch.h"
#include "tests/support/kernel_store.h"

/// Models whose weights are held in 8 bits: how far that moves logits and loss, and what is quantized.
using namespace lathe;
using pretrained::WeightFormat;
using test::CaseGraph;
using test::HfCase;

namespace {

struct Moved {
  double logits = 0;  ///< max |got - want| / max |want|
  double loss = 0;    ///< |got - want|: the logarithm of the perplexity
  double exact = 0;   ///< of the logits, against those of the numbers that the quantized ones stand for
};

/// What a quantized weight stands for, in the shape that the model gives it.
HostTensor meant(const pretrained::Pretrained& loaded, const nn::Parameter& parameter) {
  const HostTensor &q = loaded.weights.get(parameter.name()), &scales = loaded.weights.get(parameter.scales_name());
  const auto shape = parameter.shape().evaluate({});
  HostTensor matrix(f32, shape);
  const bool transposed = parameter.is_transposed();
  const std::int64_t n = q.shape()[1], block = n / scales.shape()[1];
  for (std::int64_t r = 0; r < q.shape()[0]; ++r)
    for (std::int64_t c = 0; c < n; ++c)
      matrix.set(transposed ? c * shape[1] + r : r * n + c, q.get(r * n + c) * scales.get((r * n + c) / block));
  return matrix;
}

HostTensor logits_of(const HfCase& which, const pretrained::Pretrained& loaded) {
  CaseGraph c(which, f32, true);
  c.g.output("logits", loaded.model->logits(c.inputs));
  return compile(c.g.finish(), {.parameters = loaded.weights}).run(c.values).at("logits");
}

/// Against what the original library computes in f64 with the weights as they are stored.
Moved moved_by_q8(const HfCase& which) {
  const pretrained::Pretrained loaded = pretrained::load(which.folder(), {.weights = WeightFormat::q8});
  CaseGraph c(which, f32, true);
  c.g.output("logits", loaded.model->logits(c.inputs));
  c.g.output("loss", loaded.model->loss(c.inputs, c.labels));
  const Tensors found = compile(c.g.finish(), {.parameters = loaded.weights}).run(c.values);
  const SafetensorsFile expected = which.expected();
  const HostTensor* mask = c.values.contains("attention_mask") ? &c.values.at("attention_mask") : nullptr;
  pretrained::Pretrained plain = pretrained::load(which.folder());
  const auto quantized = loaded.model->parameters(), stored = plain.model->parameters();
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!quantized[i].is_quantized()) continue;
    stored[i].store_as(f32);
    plain.weights.set(stored[i].name(), meant(loaded, quantized[i]));
  }
  return {.logits = test::error_of(found.at("logits"), expected.tensor("logits"), mask),
          .loss = std::abs(found.at("loss").get(0) - expected.tensor("loss").get(0)),
          .exact = test::error_of(found.at("logits"), logits_of(which, plain), mask)};
}

}  // namespace

TEST_CASE("quantized: models of every family compute with what the numbers stand for") {
  int quantized = 0;
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    const Moved moved = moved_by_q8(which);
    INFO(which.name << ": logits " << moved.logits << ", loss " << moved.loss << ", exact " << moved.exact);
    CHECK(moved.exact <= 2e-5);
    // A mixture may choose another expert.
    CHECK(moved.logits <= (which.name == "mixtral" ? 0.5 : 0.15));
    CHECK(moved.loss <= 0.03);
    if (moved.logits > 1e-4) ++quantized;
  }
  CHECK(quantized >= 10);
}

TEST_CASE("quantized: a cache gives the logits of full passes") {
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (which.name != "gpt2" && which.name != "llama") continue;
    INFO(which.name);
    const pretrained::Pretrained loaded = pretrained::load(which.folder(), {.weights = WeightFormat::q8});
    const std::vector<std::int64_t> ids = {5, 3, 9, 1, 7, 2};
    Graph g{"full"};
    const Tensor input = g.input("input_ids", i64, {1, Dim("T")});
    g.output("logits", loaded.model->logits({.ids = input}));
    const HostTensor all = compile(g.finish(), {.parameters = loaded.weights})
                               .run({{"input_ids", HostTensor::from_ints({1, 6}, ids)}})
                               .at("logits");
    test::KernelStore store;
    CachedLm lm(*loaded.model, loaded.weights, {.chunk = 3, .cache = &store});
    const std::vector<std::vector<std::int64_t>> prompt = {{ids.begin(), ids.begin() + 4}};
    const HostTensor* logits = &lm.start(prompt);
    const std::int64_t vocab = loaded.model->vocabulary_size();
    for (std::int64_t t = 3; t < 6; ++t) {
      HostTensor want(f32, {1, vocab});
      for (std::int64_t i = 0; i < vocab; ++i) want.set(i, all.get(t * vocab + i));
      CHECK(test::error_of(*logits, want) <= 2e-5);
      if (t < 5) logits = &lm.step(std::span(&ids[static_cast<std::size_t>(t) + 1], 1));
    }
  }
}

TEST_CASE("quantized: matrices take half the memory, norms stay, and such a model is not saved") {
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (which.name != "llama" && which.name != "gpt2") continue;
    const pretrained::Pretrained stored = pretrained::load(which.folder());
    const pretrained::Pretrained loaded = pretrained::load(which.folder(), {.weights = WeightFormat::q8});
    std::int64_t numbers = 0, scales = 0;
    for (const nn::Parameter& parameter : loaded.model->parameters()) {
      const HostTensor& value = loaded.weights.get(parameter.name());
      INFO(which.name << " " << parameter.name());
      CHECK(value.dtype() == (parameter.is_quantized() ? i8 : stored.weights.get(parameter.name()).dtype()));
      if (parameter.shape().rank() == 1) CHECK_FALSE(parameter.is_quantized());
      if (!parameter.is_quantized()) continue;
      CHECK(value.numel() == stored.weights.get(parameter.name()).numel());
      numbers += value.numel();
      scales += loaded.weights.get(parameter.scales_name()).numel();
    }
    CHECK(numbers > 0);
    CHECK(scales * 16 <= numbers);
    CHECK(loaded.model->table().is_quantized() == (which.name == "llama"));
    const test::ScratchFolder folder;
    CHECK_THROWS_WITH(save(loaded, folder / "saved"), Catch::Contains("[quantized_weights]"));
  }
}

TEST_CASE("an encoder-decoder is not loaded in 8 bits") {
  const auto t5 = test::hf_cases("seq2seq-lm").front().folder();
  CHECK_THROWS_WITH(pretrained::load_seq2seq_lm(t5, {.weights = WeightFormat::q8}),
                    Catch::Contains("[quantized_weights]"));
}
