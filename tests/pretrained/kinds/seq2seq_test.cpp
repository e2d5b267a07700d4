#include "models/generation/cached_seq2seq.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "models/generation/generator.h"
#include "tests/pretrained/cases/continuations.h"
#include "tests/pretrained/cases/model_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/word_tokenizer.h"

using namespace lathe;
using test::HfCase;
using test::ids_of;

namespace {

void outputs_of(test::ModelGraph& c, std::string_view name, const std::vector<Tensor>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) c.outputs.emplace(fmt::format("{}_hidden.{}", name, i), states[i]);
}

test::LoadedCase seq2seq(const std::filesystem::path& folder) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::Seq2SeqLm>(folder),
                           [](const pretrained::Seq2SeqLm& model, test::ModelGraph& c, DType dtype) {
                             const Dim B{"B"}, S{"S"}, T{"T"};
                             const pretrained::Seq2SeqInputs inputs{
                                 .ids = c.take("input_ids", i64, {B, S}),
                                 .decoder_ids = c.take("decoder_input_ids", i64, {B, T}),
                                 .mask = c.take_if("attention_mask", i64, {B, S}),
                                 .dtype = dtype};
                             const auto memory = model.encode(inputs);
                             outputs_of(c, "encoder", memory);
                             outputs_of(c, "decoder", model.decode(inputs, memory.back()));
                             c.outputs.emplace("logits", model.logits(inputs));
                             c.loss = model.loss(inputs, c.take("labels", i64, {B, T}));
                           });
}

/// Compares the beams of a case with the expected ones, which are padded with the end token.
void check_beams(std::vector<Beam> found, const HostTensor& ids, const HostTensor& scores, std::int64_t end = 0) {
  REQUIRE(std::ssize(found) == ids.shape()[0]);
  for (std::int64_t i = 0; i < std::ssize(found); ++i) {
    Beam& beam = found[static_cast<std::size_t>(i)];
    beam.tokens.resize(static_cast<std::size_t>(ids.shape()[1]), end);
    CHECK(beam.tokens == ids_of(ids, i));
    CHECK(beam.score == Approx(scores.get(i)).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("encoder-decoders match transformers") {
  const auto cases = test::hf_cases("seq2seq-lm");
  CHECK(cases.size() == 2);
  for (const HfCase& which : cases) {
    test::check_model(which, seq2seq);
    test::check_saved(which, seq2seq);
  }
}

TEST_CASE("encoder-decoders generate like transformers: greedy and beam search") {
  for (const HfCase& which : test::hf_cases("seq2seq-lm")) {
    INFO(which.name);
    test::KernelStore store;
    const SafetensorsFile inputs = which.inputs(), expected = which.expected();
    const auto loaded = pretrained::load_pretrained<pretrained::Seq2SeqLm>(which.folder());
    CachedSeq2Seq model(*loaded.model, loaded.weights, {.dtype = f64, .cache = &store});
    for (const char* number : {"0", "1"})
      CHECK(model.greedy(ids_of(inputs.tensor(fmt::format("prompt{}", number))), 24, {}) ==
            ids_of(expected.tensor(fmt::format("new_ids{}", number))));
    const std::vector<std::int64_t> prompt = ids_of(inputs.tensor("beam_prompt"));
    BeamOptions options{.width = 3, .results = 3, .longest = 24};
    check_beams(model.beams(prompt, options), expected.tensor("beam_ids"), expected.tensor("beam_scores"));
    options.end_tokens = {which.beam_end.value()};
    check_beams(model.beams(prompt, options), expected.tensor("beam_eos_ids"), expected.tensor("beam_eos_scores"),
                which.beam_end.value());
    CachedSeq2Seq rounded(*loaded.model, loaded.weights, {.dtype = f64, .cache_dtype = f32, .cache = &store});
    const HostTensor scores = expected.tensor("beam_eos_scores");
    const auto beams = rounded.beams(prompt, options);
    for (std::size_t i = 0; i < beams.size(); ++i)
      CHECK(beams[i].score == Approx(scores.get(static_cast<std::int64_t>(i))).epsilon(1e-5));
    const std::vector<std::int64_t> first = ids_of(expected.tensor("new_ids0"));
    CHECK(model.greedy(ids_of(inputs.tensor("prompt0")), 24, std::span(first).first(1)) == std::vector{first[0]});
  }
}

TEST_CASE("cached encoder-decoder steps match the logits of transformers, also for batched prompts") {
  for (const HfCase& which : test::hf_cases("seq2seq-lm")) {
    INFO(which.name);
    test::KernelStore store;
    const SafetensorsFile inputs = which.inputs(), expected = which.expected();
    const auto loaded = pretrained::load_pretrained<pretrained::Seq2SeqLm>(which.folder());
    for (const DType dtype : {f64, f32}) {
      CachedSeq2Seq model(*loaded.model, loaded.weights, {.dtype = dtype, .cache = &store});
      const std::vector<std::vector<std::int64_t>> prompts{ids_of(inputs.tensor("prompt0")),
                                                           ids_of(inputs.tensor("prompt1"))};
      const std::vector<HostTensor> ids{expected.tensor("new_ids0"), expected.tensor("new_ids1")},
          logits{expected.tensor("new_logits0"), expected.tensor("new_logits1")};
      const double allowed = dtype == f64 ? 1e-10 : 2e-5;
      model.start(prompts);  // of 5 and 9 tokens
      for (std::int64_t t = 0; t < 24; ++t) {
        for (std::int64_t i = 0; i < 2; ++i) {
          const std::vector<double> got = logits_row(model.logits(), i), want = logits_row(logits[i], t);
          for (std::size_t word = 0; word < got.size(); ++word)
            REQUIRE(got[word] == Approx(want[word]).margin(allowed * 30));
        }
        model.step(std::vector{ids[0].get_int(t), ids[1].get_int(t)});
      }
    }
  }
}

TEST_CASE("an encoder-decoder cache grows, and is reset for each prompt") {
  const HfCase which = test::hf_cases("seq2seq-lm").front();
  test::KernelStore store;
  const auto loaded = pretrained::load_pretrained<pretrained::Seq2SeqLm>(which.folder());
  CachedSeq2Seq model(*loaded.model, loaded.weights, {.dtype = f64, .cache = &store});
  const std::vector<std::int64_t> prompt{5, 9, 17};
  std::vector<std::int64_t> ids{0};
  for (std::int64_t i = 0; i < 300; ++i) ids.push_back((i * 37 + 11) % 100 + 3);
  Graph g("whole");
  const Dim B("B"), S("S"), T("T");
  g.output("logits", loaded.model->logits({.ids = g.input("input_ids", i64, {B, S}),
                                           .decoder_ids = g.input("decoder_input_ids", i64, {B, T}),
                                           .dtype = f64}));
  const auto row = [](const std::vector<std::int64_t>& of) {
    HostTensor made(i64, {1, std::ssize(of)});
    for (std::int64_t i = 0; i < std::ssize(of); ++i) made.set_int(i, of[static_cast<std::size_t>(i)]);
    return made;
  };
  const HostTensor whole =
      compile(g.finish(), {.mode = Mode::evaluation, .parameters = loaded.weights, .cache = &store})
          .run({{"input_ids", row(prompt)}, {"decoder_input_ids", row(ids)}})
          .at("logits");
  for (int time = 0; time < 2; ++time) {
    model.start({&prompt, 1});
    for (std::size_t t = 1; t < ids.size(); ++t) model.step({&ids[t], 1});
    const std::vector<double> got = logits_row(model.logits(), 0), want = logits_row(whole, 300);
    for (std::size_t word = 0; word < got.size(); ++word) REQUIRE(got[word] == Approx(want[word]).margin(1e-10));
    (void)model.beams(prompt, {.width = 2, .longest = 3});  // of other sizes
    CHECK(test::failure_of([&] { model.step({&ids[1], 1}); }).label == "generation_batch");
  }
  CHECK(test::failure_of([&] { model.start({}); }).label == "generation_prompt");
  CHECK(test::failure_of([&] { model.beams(prompt, {.width = 0}); }).label == "decoding_options");
}

TEST_CASE("a generator generates texts with an encoder-decoder") {
  const HfCase which = test::hf_cases("seq2seq-lm").front();
  const test::ScratchFolder folder;
  const auto path = folder / "t5";
  std::filesystem::copy(which.folder(), path);
  test::spit(path / "tokenizer.json", test::word_tokenizer(112));
  test::KernelStore store;
  Generator t5 = Generator::load(path, {.dtype = f64, .cache = &store});
  CHECK(t5.defaults().stop_tokens == std::vector<std::int64_t>{1});
  GenerationOptions options;
  options.max_new_tokens = 24;
  std::vector<std::string> prompts, wanted;
  for (const std::string number : {"0", "1"}) {
    prompts.push_back(test::words_of<std::int64_t>(ids_of(which.inputs().tensor("prompt" + number))));
    wanted.push_back(test::words_of<std::int64_t>(ids_of(which.expected().tensor("new_ids" + number))));
    TextPieces pieces = t5.generate(prompts.back(), options);
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    CHECK(text == wanted.back());
  }
  Generation both = t5.start(prompts, options);
  both.run();
  CHECK(both.text(0) == wanted[0]);
  CHECK(both.text(1) == wanted[1]);
  const std::string beam_prompt = test::words_of<std::int64_t>(ids_of(which.inputs().tensor("beam_prompt")));
  options.beams = {.width = 3, .results = 3};
  const auto beams = t5.beams(beam_prompt, options);
  options.beams = {};
  REQUIRE(beams.size() == 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<std::int64_t> ids = ids_of(which.expected().tensor("beam_ids"), i);
    CHECK(beams[static_cast<std::size_t>(i)].text == test::words_of(std::span(ids).subspan(1)));
  }
  // The penalty applies to the decoder's tokens, including its start token, but not to those of the encoder.
  options.sampling.repetition_penalty = 1e6;
  Generation once = t5.start(std::vector{prompts[0]}, options);
  once.run();
  std::vector<std::int64_t> seen{0};
  for (const std::int64_t token : once.tokens()) {
    CHECK(std::find(seen.begin(), seen.end(), token) == seen.end());
    seen.push_back(token);
  }
}

TEST_CASE("encoder-decoder labels are shifted after the start token") {
  const auto loaded =
      pretrained::load_pretrained<pretrained::Seq2SeqLm>(test::hf_cases("seq2seq-lm").front().folder());
  Graph g{"shift"};
  g.output("ids", loaded.model->shifted(g.input("labels", i64, {Dim("B"), Dim("T")})));
  const HostTensor labels = HostTensor::from({2, 3}, {7, 8, 9, 5, -100, -100}, i64);
  const HostTensor ids = compile(g.finish()).run({{"labels", labels}}).at("ids");
  CHECK(ids_of(ids, 0) == std::vector<std::int64_t>{0, 7, 8});
  CHECK(ids_of(ids, 1) == std::vector<std::int64_t>{0, 5, 0});
}
