#include "models/pretrained/image_models/image_model.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/pretrained/cases/model_case.h"

using namespace lathe;
using test::HfCase;

namespace {

test::LoadedCase classifier(const std::filesystem::path& folder) {
  return test::loaded_case(pretrained::load_pretrained<pretrained::ImageModel>(folder),
                           [](const pretrained::ImageModel& model, test::ModelGraph& c, DType dtype) {
                             const Dim B{"B"};
                             const Tensor images = c.take("pixel_values", dtype, model.image_shape(B));
                             const auto states = model.hidden_states(images);
                             for (std::size_t i = 0; i < states.size(); ++i)
                               c.outputs.emplace(fmt::format("hidden.{}", i), states[i]);
                             c.outputs.emplace("logits", model.logits(images));
                             c.loss = model.loss(images, c.take("labels", i64, {B}));
                           });
}

}  // namespace

TEST_CASE("image models match transformers") {
  const auto cases = test::hf_cases("image-classification");
  CHECK(cases.size() == 1);
  for (const HfCase& which : cases) {
    test::check_model(which, classifier);
    test::check_saved(which, classifier);
  }
}
