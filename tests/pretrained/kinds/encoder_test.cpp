#include "models/pretrained/encoders/encoder.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/pretrained/cases/model_case.h"

using namespace lathe;
using test::HfCase;

namespace {

pretrained::EncoderInputs inputs_of(test::ModelGraph& c, DType dtype) {
  const Shape shape{Dim("B"), Dim("T")};
  return {.ids = c.take("input_ids", i64, shape),
          .mask = c.take_if("attention_mask", i64, shape),
          .types = c.take_if("token_type_ids", i64, shape),
          .dtype = dtype};
}

test::LoadedCase masked_lm(const std::filesystem::path& folder) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::Encoder>(folder),
                           [](const pretrained::Encoder& model, test::ModelGraph& c, DType dtype) {
                             const pretrained::EncoderInputs inputs = inputs_of(c, dtype);
                             const auto states = model.hidden_states(inputs);
                             for (std::size_t i = 0; i < states.size(); ++i)
                               c.outputs.emplace(fmt::format("hidden.{}", i), states[i]);
                             c.outputs.emplace("logits", model.head(states.back()));
                             c.loss = model.loss(inputs, c.take("labels", i64, inputs.ids.shape()));
                           });
}

}  // namespace

TEST_CASE("masked language models match transformers") {
  const auto cases = test::hf_cases("masked-lm");
  CHECK(cases.size() == 3);
  for (const HfCase& which : cases) {
    test::check_model(which, masked_lm);
    test::check_saved(which, masked_lm);
  }
}
