#include <catch2/catch.hpp>

#include <cmath>

#include "ir/support/error.h"
#include "models/generation/cached_lm.h"
#include "models/generation/cached_seq2seq.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/pretrained.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/continuations.h"
#include "tests/pretrained/cases/model_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"

/// Models with 8-bit weights: the change of logits and loss, and which weights are quantized.
using namespace lathe;
using pretrained::WeightFormat;
using test::Continuations;
using test::HfCase;
using test::row_of;

namespace {

struct Moved {
  double logits = 0;  ///< max |got - want| / max |want|
  double loss = 0;    ///< |got - want|: the change of the logarithm of the perplexity
  double exact = 0;   ///< error of the logits relative to those with dequantized weights
};

/// Returns a dequantized weight, in the shape that the model gives it.
HostTensor meant(const pretrained::ModelFiles& loaded, const nn::Parameter& parameter) {
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

using Load = test::LoadedCase (*)(const HfCase& which, WeightFormat weights);

test::LoadedCase causal(const HfCase& which, WeightFormat weights) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::CausalLm>(which.folder(), {.weights = weights}),
                           [](const pretrained::CausalLm& model, test::ModelGraph& c, DType dtype) {
                             const Shape shape{Dim("B"), Dim("T")};
                             const pretrained::TokenInputs inputs{.ids = c.take("input_ids", i64, shape),
                                                                  .mask = c.take_if("attention_mask", i64, shape),
                                                                  .positions = c.take_if("position_ids", i64, shape),
                                                                  .dtype = dtype};
                             c.outputs.emplace("logits", model.logits(inputs));
                             c.loss = model.loss(inputs, c.take("labels", i64, shape));
                           });
}

test::LoadedCase seq2seq(const HfCase& which, WeightFormat weights) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::Seq2SeqLm>(which.folder(), {.weights = weights}),
                           [](const pretrained::Seq2SeqLm& model, test::ModelGraph& c, DType dtype) {
                             const Dim B{"B"}, S{"S"}, T{"T"};
                             const pretrained::Seq2SeqInputs inputs{
                                 .ids = c.take("input_ids", i64, {B, S}),
                                 .decoder_ids = c.take("decoder_input_ids", i64, {B, T}),
                                 .mask = c.take_if("attention_mask", i64, {B, S}),
                                 .dtype = dtype};
                             c.outputs.emplace("logits", model.logits(inputs));
                             c.loss = model.loss(inputs, c.take("labels", i64, {B, T}));
                           });
}

test::LoadedCase encoder(const HfCase& which, WeightFormat weights) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::Encoder>(which.folder(), {.weights = weights}),
                           [](const pretrained::Encoder& model, test::ModelGraph& c, DType dtype) {
                             const Shape shape{Dim("B"), Dim("T")};
                             const pretrained::EncoderInputs inputs{.ids = c.take("input_ids", i64, shape),
                                                                    .mask = c.take_if("attention_mask", i64, shape),
                                                                    .types = c.take_if("token_type_ids", i64, shape),
                                                                    .dtype = dtype};
                             c.outputs.emplace("logits", model.logits(inputs));
                             c.loss = model.loss(inputs, c.take("labels", i64, shape));
                           });
}

test::LoadedCase image_model(const HfCase& which, WeightFormat weights) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::ImageModel>(which.folder(), {.weights = weights}),
                           [](const pretrained::ImageModel& model, test::ModelGraph& c, DType dtype) {
                             const Dim B{"B"};
                             const Tensor images = c.take("pixel_values", dtype, model.image_shape(B));
                             c.outputs.emplace("logits", model.logits(images));
                             c.loss = model.loss(images, c.take("labels", i64, {B}));
                           });
}

/// Returns logits and loss of a case, in f32.
Tensors results_of(const HfCase& which, const test::LoadedCase& loaded) {
  test::ModelGraph c(which);
  loaded.build(c, f32);
  c.g.output("logits", c.outputs.at("logits"));
  c.g.output("loss", c.loss);
  return compile(c.g.finish(), {.parameters = loaded.files->weights, .cache = test::shared_kernels()}).run(c.values);
}

/// Compares with the original library's results in f64 with the stored weights.
Moved moved_by_q8(const HfCase& which, Load load) {
  const test::LoadedCase loaded = load(which, WeightFormat::q8), plain = load(which, WeightFormat::stored);
  const Tensors found = results_of(which, loaded);
  const SafetensorsFile inputs = which.inputs(), expected = which.expected();
  const auto mask = inputs.contains("decoder_input_ids") || !inputs.contains("attention_mask")
                        ? std::nullopt
                        : std::optional(inputs.tensor("attention_mask"));
  const auto quantized = loaded.module.parameters(), stored = plain.module.parameters();
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!quantized[i].is_quantized()) continue;
    stored[i].store_as(f32);
    plain.files->weights.set(stored[i].name(), meant(*loaded.files, quantized[i]));
  }
  const auto distance = [&](const HostTensor& logits) {
    return test::error_of(found.at("logits"), logits, mask ? &*mask : nullptr);
  };
  return {.logits = distance(expected.tensor("logits")),
          .loss = std::abs(found.at("loss").get(0) - expected.tensor("loss").get(0)),
          .exact = distance(results_of(which, plain).at("logits"))};
}

/// Returns the largest difference of the logits of cached steps from those with the stored weights.
double steps_moved(const pretrained::Pretrained& loaded, const Continuations& known,
                   const SequenceModelOptions& options) {
  CachedLm lm(*loaded.model, loaded.weights, options);
  double most = 0;
  for (std::size_t i = 0; i < known.prompts.size(); ++i) {
    lm.start(std::span(&known.prompts[i], 1));
    for (std::size_t step = 0; step < known.new_ids[i].size(); ++step) {
      if (step > 0) lm.step(std::span(&known.new_ids[i][step - 1], 1));
      const HostTensor want = row_of(known.logits[i], static_cast<std::int64_t>(step));
      most = std::max(most, test::error_of(row_of(lm.logits(), 0), want));
    }
  }
  return most;
}

}  // namespace

TEST_CASE("quantized: models of every family compute with the dequantized weights") {
  int quantized = 0;
  const auto check = [&](const HfCase& which, Load load, double loss) {
    const Moved moved = moved_by_q8(which, load);
    INFO(which.name << ": logits " << moved.logits << ", loss " << moved.loss << ", exact " << moved.exact);
    CHECK(moved.exact <= 2e-5);
    // A mixture of experts may choose another expert.
    CHECK(moved.logits <= (which.name == "mixtral" ? 0.5 : 0.15));
    CHECK(moved.loss <= loss);
    if (moved.logits > 1e-4) ++quantized;
  };
  for (const HfCase& which : test::hf_cases("causal-lm")) check(which, causal, 0.03);
  CHECK(quantized >= 10);
  quantized = 0;
  // Two stacks in sequence round, and the logits are larger.
  for (const HfCase& which : test::hf_cases("seq2seq-lm")) check(which, seq2seq, 0.06);
  CHECK(quantized == 2);
  quantized = 0;
  for (const HfCase& which : test::hf_cases("masked-lm")) check(which, encoder, 0.06);
  for (const HfCase& which : test::hf_cases("image-classification")) check(which, image_model, 0.06);
  CHECK(quantized == 4);
}

TEST_CASE("quantized: cached logits match full passes") {
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (which.name != "gpt2" && which.name != "llama") continue;
    INFO(which.name);
    const auto loaded =
        pretrained::load_pretrained<pretrained::CausalLm>(which.folder(), {.weights = WeightFormat::q8});
    const std::vector<std::int64_t> ids = {5, 3, 9, 1, 7, 2};
    Graph g{"full"};
    const Tensor input = g.input("input_ids", i64, {1, Dim("T")});
    g.output("logits", loaded.model->logits({.ids = input}));
    const HostTensor all = compile(g.finish(), {.parameters = loaded.weights, .cache = test::shared_kernels()})
                               .run({{"input_ids", HostTensor::from_ints({1, 6}, ids)}})
                               .at("logits")
                               .reshaped({6, loaded.model->vocabulary_size()});
    test::KernelStore store;
    const std::vector<std::vector<std::int64_t>> prompt = {{ids.begin(), ids.begin() + 4}};
    for (const auto& [dtype, most] : {std::pair{f32, 2e-5}, {bf16, 3e-2}}) {
      CachedLm lm(*loaded.model, loaded.weights, {.dtype = dtype, .cache_dtype = dtype, .chunk = 3, .cache = &store});
      lm.start(prompt);
      for (std::int64_t t = 3; t < 6; ++t) {
        CHECK(test::error_of(row_of(lm.logits(), 0), row_of(all, t)) <= most);
        if (t < 5) lm.step(std::span(&ids[static_cast<std::size_t>(t) + 1], 1));
      }
    }
  }
}

TEST_CASE("quantized: a bf16 cache changes logits by less than the weights do") {
  double exact = 0, rounded = 0;
  int compared = 0;
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    const Continuations known(which);
    if (known.prompts.empty() || which.name == "mixtral") continue;  // its tokens may choose another expert
    INFO(which.name);
    const auto loaded =
        pretrained::load_pretrained<pretrained::CausalLm>(which.folder(), {.weights = WeightFormat::q8});
    test::KernelStore store;
    const double with_f32 = steps_moved(loaded, known, {.cache_dtype = f32, .cache = &store});
    const double with_bf16 = steps_moved(loaded, known, {.cache = &store});
    exact += with_f32;
    rounded += with_bf16;
    ++compared;
  }
  CHECK(compared >= 10);
  CHECK(rounded != exact);
  CHECK(rounded < 1.1 * exact);
}

TEST_CASE("quantized: matrices take half the memory, norms are not quantized, and saving is rejected") {
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (which.name != "llama" && which.name != "gpt2") continue;
    const auto stored = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
    const auto loaded =
        pretrained::load_pretrained<pretrained::CausalLm>(which.folder(), {.weights = WeightFormat::q8});
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

TEST_CASE("quantized: cached encoder-decoder steps match full passes") {
  const HfCase which = test::hf_cases("seq2seq-lm").front();
  const auto loaded =
      pretrained::load_pretrained<pretrained::Seq2SeqLm>(which.folder(), {.weights = WeightFormat::q8});
  const HostTensor prompt = which.inputs().tensor("prompt0");
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < prompt.numel(); ++i) ids.push_back(prompt.get_int(i));
  test::KernelStore store;
  const std::vector<std::int64_t> found =
      CachedSeq2Seq(*loaded.model, loaded.weights, {.cache = &store}).greedy(ids, 8, {});
  REQUIRE_FALSE(found.empty());
  Graph g{"full"};
  const Dim S{"S"}, T{"T"};
  const Tensor logits = loaded.model->logits(
      {.ids = g.input("input_ids", i64, {1, S}), .decoder_ids = g.input("decoder_input_ids", i64, {1, T})});
  g.output("best", logits.argmax(2));
  Executable full = compile(g.finish(), {.parameters = loaded.weights, .cache = test::shared_kernels()});
  std::vector<std::int64_t> written{loaded.model->start_token()};
  for (const std::int64_t token : found) {
    const auto size = std::ssize(written);
    const Tensors results = full.run({{"input_ids", HostTensor::from_ints({1, std::ssize(ids)}, ids)},
                                      {"decoder_input_ids", HostTensor::from_ints({1, size}, written)}});
    CHECK(results.at("best").get_int(size - 1) == token);
    written.push_back(token);
  }
}
