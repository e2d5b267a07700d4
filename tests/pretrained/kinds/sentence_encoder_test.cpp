#include "models/pretrained/encoders/sentence_encoder.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/model_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::HfCase;

namespace {

HfCase the_case() {
  const auto cases = test::hf_cases("sentence-embedding");
  CHECK(cases.size() == 1);
  return cases.front();
}

/// The loss pairs sentence i with sentence i + 3, against all others.
test::LoadedCase sentences(const std::filesystem::path& folder) {
  return test::loaded_case(
      pretrained::load_pretrained<pretrained::SentenceEncoder>(folder),
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

/// Returns a copy of the case with another pooling configuration.
std::filesystem::path with_pooling(const test::ScratchFolder& folder, const std::string& pooling, bool normalize) {
  const auto path = folder / "model";
  std::filesystem::remove_all(path);
  std::filesystem::copy(the_case().folder(), path, std::filesystem::copy_options::recursive);
  test::spit(path / "1_Pooling/config.json",
             fmt::format(R"({{"word_embedding_dimension": 32{}{}}})", pooling.empty() ? "" : ", ", pooling));
  if (!normalize)
    test::spit(path / "modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                                          {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  return path;
}

}  // namespace

TEST_CASE("sentence embeddings match transformers") {
  test::check_model(the_case(), sentences);
  test::check_saved(the_case(), sentences);
}

TEST_CASE("vectors of sentences: every pooling mode, by hand") {
  const test::ScratchFolder folder;
  const auto loaded = pretrained::load_pretrained<pretrained::SentenceEncoder>(with_pooling(
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

TEST_CASE("vectors of sentences: mean pooling without modules.json") {
  const test::ScratchFolder folder;
  const auto path = with_pooling(folder, R"("pooling_mode_cls_token": true)", true);
  std::filesystem::remove(path / "modules.json");
  const pretrained::Pooling pooling = pretrained::load_pretrained<pretrained::SentenceEncoder>(path).model->pooling();
  CHECK((pooling.mean && !pooling.cls && !pooling.normalize));
}

TEST_CASE("vectors of sentences: rejects unknown settings") {
  const test::ScratchFolder folder;
  const auto failure = [&](const std::string& pooling) {
    return test::failure_of(
        [&] { (void)pretrained::load_pretrained<pretrained::SentenceEncoder>(with_pooling(folder, pooling, true)); });
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
    CHECK(test::failure_of([&] { (void)pretrained::load_pretrained<pretrained::SentenceEncoder>(path); }).label ==
          "config_value");
  }
}

TEST_CASE("vectors of sentences: newer files name the pooling modes") {
  const test::ScratchFolder folder;
  const auto path = with_pooling(folder, "", true);
  const auto pooling_of = [&](const std::string& text) {
    test::spit(path / "1_Pooling/config.json", text);
    return pretrained::load_pretrained<pretrained::SentenceEncoder>(path).model->pooling();
  };
  const pretrained::Pooling max = pooling_of(R"({"embedding_dimension": 32, "pooling_mode": "max"})");
  CHECK((max.max && !max.mean));
  const pretrained::Pooling both =
      pooling_of(R"({"embedding_dimension": 32, "pooling_mode": ["cls", "lasttoken"], "include_prompt": true})");
  CHECK((both.cls && both.last && !both.mean && !both.max));
  for (const auto& [text, key] :
       {std::pair{R"({"embedding_dimension": 32, "pooling_mode": ["lasttoken", "cls"]})", "pooling_mode"},
        {R"({"embedding_dimension": 32, "pooling_mode": "best"})", "pooling_mode"},
        {R"({"embedding_dimension": 32, "pooling_mode": []})", "pooling_mode"},
        {R"({"embedding_dimension": 33, "pooling_mode": "cls"})", "word_embedding_dimension"},
        {R"({"embedding_dimension": 32, "word_embedding_dimension": 31})", "embedding_dimension"}}) {
    const auto failure = test::failure_of([&] { (void)pooling_of(text); });
    INFO(failure.text);
    CHECK(failure.label == "config_value");
    CHECK_THAT(failure.text, Contains(key));
  }
}

TEST_CASE("vectors of sentences: every key is used, harmless or rejected") {
  const test::ScratchFolder folder;
  const auto path = with_pooling(folder, R"("pooling_mode_mean_tokens": true)", true);
  const auto refusal = [&](const std::string& file, const std::string& text) {
    const std::string before = test::slurp(path / file);
    std::filesystem::create_directories((path / file).parent_path());
    test::spit(path / file, text);
    const auto failure =
        test::failure_of([&] { (void)pretrained::load_pretrained<pretrained::SentenceEncoder>(path); });
    if (before.empty())
      std::filesystem::remove(path / file);
    else
      test::spit(path / file, before);
    return failure;
  };
  const std::string transformer = "sentence_bert_config.json";
  const struct {
    std::string file, key, value;
  } refused[] = {
      {transformer, "transformer_task", "\"fill-mask\""},
      {transformer, "modality_config", "{\"image\": {}}"},
      {transformer, "module_output_name", "\"scores\""},
      {transformer, "processing_kwargs", "{\"text\": {\"padding\": true}}"},
      {transformer, "tokenizer_args", "{\"use_fast\": false}"},
      {transformer, "processor_kwargs", "{\"use_fast\": false}"},
      {transformer, "tokenizer_name_or_path", "\"other\""},
      {transformer, "model_args", "{\"dtype\": \"float16\"}"},
      {transformer, "model_kwargs", "{\"dtype\": \"float16\"}"},
      {transformer, "config_args", "{\"num_labels\": 3}"},
      {transformer, "config_kwargs", "{\"num_labels\": 3}"},
      {"2_Normalize/config.json", "module_input_name", "\"token_embeddings\""},
      {"2_Normalize/config.json", "module_output_name", "\"token_embeddings\""},
  };
  for (const auto& row : refused) {
    const auto failure = refusal(row.file, fmt::format("{{\"{}\": {}}}", row.key, row.value));
    INFO(row.key << " " << failure.text);
    CHECK(failure.label == "config_value");
    CHECK_THAT(failure.text, Contains(row.key) && Contains(row.file));
  }
  for (const char* harmless : {R"("unpad_inputs": true)", R"("query_length": 3)", R"("document_length": 3)",
                               R"("query_expansion": {"length": 3})", R"("transformer_task": "feature-extraction")"})
    CHECK(refusal(transformer, fmt::format("{{{}}}", harmless)).label == "no error");
  // Both are used: max_seq_length as tokens, do_lower_case before the tokenizer.
  test::spit(path / transformer, R"({"max_seq_length": 5, "do_lower_case": true})");
  const pretrained::TextOptions texts = pretrained::load_pretrained<pretrained::SentenceEncoder>(path).model->texts();
  CHECK((texts.longest == 5 && texts.lower_case));
  const auto modules = refusal("modules.json", R"([{"path": "", "type": "m.Transformer", "idx": 7, "name": "x"},
      {"path": "1_Pooling", "type": "m.Pooling", "kwargs": ["a"]}])");
  CHECK_THAT(modules.text, Contains("kwargs"));
}
