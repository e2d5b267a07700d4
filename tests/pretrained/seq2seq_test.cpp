#include "frontend/pretrained/seq2seq/seq2seq_lm.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "frontend/pretrained/seq2seq/generate.h"
#include "tests/pretrained/model_case.h"
#include "tests/support/memory_store.h"

using namespace lathe;
using test::HfCase;

namespace {

void outputs_of(test::ModelGraph& c, std::string_view name, const std::vector<Tensor>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) c.outputs.emplace(fmt::format("{}_hidden.{}", name, i), states[i]);
}

test::LoadedCase seq2seq(const std::filesystem::path& folder) {
  return test::loaded_case(
      pretrained::load_seq2seq_lm(folder), [](const pretrained::Seq2SeqLm& model, test::ModelGraph& c, DType dtype) {
        const Dim B{"B"}, S{"S"}, T{"T"};
        const pretrained::Seq2SeqInputs inputs{.ids = c.take("input_ids", i64, {B, S}),
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

std::vector<std::int64_t> ids_of(const HostTensor& x, std::int64_t row = 0) {
  const std::int64_t width = x.shape().back();
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < width; ++i) ids.push_back(x.get_int(row * width + i));
  return ids;
}

/// The beams of a case are those expected, which are filled up with the end token.
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

TEST_CASE("encoder-decoders are those of transformers") {
  const auto cases = test::hf_cases("seq2seq-lm");
  CHECK(cases.size() == 2);
  for (const HfCase& which : cases) {
    test::check_model(which, seq2seq);
    test::check_saved(which, seq2seq);
  }
}

TEST_CASE("encoder-decoders go on as transformers does: greedily and by beams") {
  for (const HfCase& which : test::hf_cases("seq2seq-lm")) {
    INFO(which.name);
    test::MemoryStore store;
    const SafetensorsFile inputs = which.inputs(), expected = which.expected();
    pretrained::Seq2SeqGenerator model(pretrained::load_seq2seq_lm(which.folder()), f64, {.cache = &store});
    for (const char* number : {"0", "1"})
      CHECK(model.greedy(ids_of(inputs.tensor(fmt::format("prompt{}", number))), 24, {}) ==
            ids_of(expected.tensor(fmt::format("new_ids{}", number))));
    const std::vector<std::int64_t> prompt = ids_of(inputs.tensor("beam_prompt"));
    BeamOptions options{.width = 3, .results = 3, .longest = 24};
    check_beams(model.beams(prompt, options), expected.tensor("beam_ids"), expected.tensor("beam_scores"));
    options.end_tokens = {which.beam_end.value()};
    check_beams(model.beams(prompt, options), expected.tensor("beam_eos_ids"), expected.tensor("beam_eos_scores"),
                which.beam_end.value());
    const std::vector<std::int64_t> first = ids_of(expected.tensor("new_ids0"));
    CHECK(model.greedy(ids_of(inputs.tensor("prompt0")), 24, {first[0]}) == std::vector{first[0]});
  }
}

TEST_CASE("labels of an encoder-decoder are shifted behind the start token") {
  const auto loaded = pretrained::load_seq2seq_lm(test::hf_cases("seq2seq-lm").front().folder());
  Graph g{"shift"};
  g.output("ids", loaded.model->shifted(g.input("labels", i64, {Dim("B"), Dim("T")})));
  const HostTensor labels = HostTensor::from({2, 3}, {7, 8, 9, 5, -100, -100}, i64);
  const HostTensor ids = compile(g.finish()).run({{"labels", labels}}).at("ids");
  CHECK(ids_of(ids, 0) == std::vector<std::int64_t>{0, 7, 8});
  CHECK(ids_of(ids, 1) == std::vector<std::int64_t>{0, 5, 0});
}
