#include "frontend/pretrained/encoders/sentence_encoder.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "runtime/executable.h"
#include "tests/pretrained/model_case.h"
#include "tests/runtime/files_scratch.h"
#include "tests/support/kernel_store.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::HfCase;

namespace {

HfCase the_case() {
  const auto cases = test::hf_cases("sentence-embedding");
  CHECK(cases.size() == 1);
  return cases.front();
}

/// The loss pairs sentence i with sentence i + 3 against the others.
test::LoadedCase sentences(const std::filesystem::path& folder) {
  return test::loaded_case(
      pretrained::load_sentence_encoder(folder),
      [](const pretrained::SentenceEncoder& model, test::ModelGraph& c, DType dtype) {
        const Shape shape{6, Dim("T")};
        const pretrained::EncoderInputs inputs{
            .ids = c.take("input_ids", i64, shape), .mask = c.take("attention_mask", i64, shape), .dtype = dtype};
        const auto states = model.encoder().hidden_states(inputs);
        for (std::size_t i = 0; i < states.size(); ++i) c.outputs.emplace(fmt::format("hidden.{}", i), states[i]);
        c.outputs.emplace("pooler_output", model.encoder().pool(states.back()));
        const Tensor e = model.embed(inputs);
        c.outputs.emplace("embedding", e);
        c.loss = cross_entropy(matmul(e.slice(0, 0, 3), e.slice(0, 3, 6).transpose(0, 1)) * 20, c.g.arange(3, i64));
      },
      {"bert.pooler.dense.weight", "bert.pooler.dense.bias"});
}

/// A copy of the case with other words for how its tokens are pooled.
std::filesystem::path with_pooling(const test::ScratchFolder& folder, const std::string& pooling, bool normalize) {
  const auto path = folder / "model";
  std::filesystem::remove_all(path);
  std::filesystem::copy(the_case().folder(), path, std::filesystem::copy_options::recursive);
  test::spit(path / "1_Pooling/config.json", fmt::format(R"({{"word_embedding_dimension": 32, {}}})", pooling));
  if (!normalize)
    test::spit(path / "modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                                          {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  return path;
}

}  // namespace

TEST_CASE("vectors of sentences are those of transformers") {
  test::check_model(the_case(), sentences);
  test::check_saved(the_case(), sentences);
}

TEST_CASE("vectors of sentences: every way of pooling, by hand") {
  const test::ScratchFolder folder;
  const auto loaded = pretrained::load_sentence_encoder(with_pooling(
      folder,
      R"("pooling_mode_cls_token": true, "pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true,
         "pooling_mode_mean_sqrt_len_tokens": true, "pooling_mode_weightedmean_tokens": true,
         "pooling_mode_lasttoken": true, "pooling_mode_other": false)",
      false));
  const std::int64_t T = 4, width = 32;
  Graph g{"pool"};
  const Tensor states = g.input("states", f64, {Dim("B"), Dim("T"), width});
  const Tensor ids = g.input("ids", i64, {Dim("B"), Dim("T")}), mask = g.input("mask", i64, {Dim("B"), Dim("T")});
  g.output("vectors", loaded.model->embed({.ids = ids, .mask = mask, .dtype = f64}, states));
  HostTensor x(f64, {1, T, width});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, std::sin(static_cast<double>(3 * i + 1)));
  const HostTensor present = HostTensor::from({1, T}, {1, 1, 1, 0}, i64);
  const HostTensor got = compile(g.finish(), {.cache = test::shared_kernels()})
                             .run({{"states", x}, {"mask", present}, {"ids", HostTensor(i64, {1, T})}})
                             .at("vectors");
  REQUIRE(got.shape() == std::vector<std::int64_t>{1, 6 * width});
  for (std::int64_t d = 0; d < width; ++d) {
    const double a = x.get(d), b = x.get(width + d), c = x.get(2 * width + d);
    const double wanted[] = {
        a, std::max({a, b, c}), (a + b + c) / 3, (a + b + c) / std::sqrt(3.0), (a + 2 * b + 3 * c) / 6, c};
    for (std::int64_t way = 0; way < 6; ++way) CHECK(got.get(way * width + d) == Approx(wanted[way]).margin(1e-12));
  }
}

TEST_CASE("vectors of sentences: without modules.json tokens have their mean") {
  const test::ScratchFolder folder;
  const auto path = with_pooling(folder, R"("pooling_mode_cls_token": true)", true);
  std::filesystem::remove(path / "modules.json");
  const pretrained::Pooling pooling = pretrained::load_sentence_encoder(path).model->pooling();
  CHECK((pooling.mean && !pooling.cls && !pooling.normalize));
}

TEST_CASE("vectors of sentences: what is not known is refused") {
  const test::ScratchFolder folder;
  const auto failure = [&](const std::string& pooling) {
    return test::failure_of([&] { (void)pretrained::load_sentence_encoder(with_pooling(folder, pooling, true)); });
  };
  for (const auto& [pooling, text] :
       {std::pair{R"("pooling_mode_best_token": true)", "pooling_mode_best_token is true"},
        std::pair{R"("pooling_mode_mean_tokens": false)", "one way of pooling"},
        std::pair{R"("pooling_mode_mean_tokens": true, "include_prompt": false)", "include_prompt is false"}}) {
    CHECK(failure(pooling).label == "config_value");
    CHECK_THAT(failure(pooling).text, Contains(text) && Contains("1_Pooling/config.json"));
  }
  const auto path = with_pooling(folder, R"("pooling_mode_mean_tokens": true)", true);
  const std::string modules[] = {
      R"([{"path": "", "type": "m.Transformer"}, {"path": "1_Pooling", "type": "m.Pooling"},
          {"path": "2_Dense", "type": "m.Dense"}])",
      R"([{"path": "0_Transformer", "type": "m.Transformer"}, {"path": "1_Pooling", "type": "m.Pooling"}])",
      R"([{"path": "", "type": "m.Transformer"}, {"path": "../1_Pooling", "type": "m.Pooling"}])",
      R"([{"path": "", "type": "m.Transformer"}, {"path": "other", "type": "m.Pooling"}])",
      R"([{"path": "", "type": "m.Transformer"}])"};
  for (const std::string& text : modules) {
    test::spit(path / "modules.json", text);
    CHECK(test::failure_of([&] { (void)pretrained::load_sentence_encoder(path); }).label == "config_value");
  }
}
