#include "frontend/pretrained/seq2seq/seq2seq_lm.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/pretrained/model_case.h"

using namespace lathe;
using test::HfCase;

namespace {

void outputs_of(test::ModelGraph& c, std::string_view name, const std::vector<Tensor>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) c.outputs.emplace(fmt::format("{}_hidden.{}", name, i), states[i]);
}

test::LoadedCase seq2seq(const std::filesystem::path& folder) {
  return test::loaded_case(pretrained::load_seq2seq_lm(folder),
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

}  // namespace

TEST_CASE("encoder-decoders are those of transformers") {
  const auto cases = test::hf_cases("seq2seq-lm");
  CHECK(cases.size() == 2);
  for (const HfCase& which : cases) {
    test::check_model(which, seq2seq);
    test::check_saved(which, seq2seq);
  }
}
