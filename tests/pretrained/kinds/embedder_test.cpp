#include "models/pretrained/encoders/embedder.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/pretrained/cases/cases.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/word_tokenizer.h"

using namespace lathe;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// The case with a tokenizer, and its sentences as texts.
struct Case {
  test::ScratchFolder folder;
  fs::path path = folder / "model";
  test::HfCase which = test::hf_cases("sentence-embedding").front();
  std::vector<std::string> texts;
  HostTensor wanted = which.expected().tensor("embedding");

  Case() {
    fs::copy(which.folder(), path, fs::copy_options::recursive);
    test::spit(path / "tokenizer.json", test::word_tokenizer(112));
    const HostTensor ids = which.inputs().tensor("input_ids"), mask = which.inputs().tensor("attention_mask");
    const std::int64_t T = ids.shape()[1];
    for (std::int64_t i = 0; i < ids.shape()[0]; ++i) {
      std::vector<std::int64_t> row;
      for (std::int64_t t = 0; t < T; ++t)
        if (mask.get_int(i * T + t) != 0) row.push_back(ids.get_int(i * T + t));
      texts.push_back(test::words_of<std::int64_t>(row));
    }
  }

  HostTensor vectors(const pretrained::EmbedderOptions& options) const {
    return pretrained::Embedder::load(path, options).embed(texts);
  }
};

}  // namespace

TEST_CASE("embedder: text embeddings match the original library, for any batch size") {
  const Case c;
  test::KernelStore store;
  for (const std::int64_t batch : {1, 2, 4, 32}) {
    CHECK(test::error_of(c.vectors({.dtype = f64, .batch = batch, .cache = &store}), c.wanted) <= 1e-10);
    CHECK(test::error_of(c.vectors({.batch = batch, .cache = &store}), c.wanted) <= 2e-5);
  }
}

TEST_CASE("embedder: texts are stripped, lowercased if configured, and truncated") {
  const Case c;
  test::KernelStore store;
  const std::string text = "t5 t6 t7 t8 t9 t10";
  const auto embedder = [&] { return pretrained::Embedder::load(c.path, {.dtype = f64, .cache = &store}); };
  const auto vector = [&](const std::string& of) { return embedder().embed(std::vector{of}); };
  CHECK(embedder().model().texts().longest == 26);  // the encoder's positions
  const HostTensor whole = vector(text), cut = vector("t5 t6 t7 t8");
  CHECK(test::error_of(vector(" \t" + text + "\n"), whole) == 0);
  CHECK(test::error_of(cut, whole) > 1e-3);
  test::spit(c.path / "tokenizer_config.json", R"({"model_max_length": 4})");
  CHECK(test::error_of(vector(text), cut) == 0);
  test::spit(c.path / "tokenizer_config.json", R"({"model_max_length": 1e30})");
  CHECK(test::error_of(vector(text), whole) == 0);
  test::spit(c.path / "sentence_bert_config.json", R"({"max_seq_length": 4, "do_lower_case": true})");
  CHECK(test::error_of(vector("T5 T6 T7 t8 t9"), cut) == 0);
  // The options that were read are saved with the model.
  auto loaded = pretrained::load_pretrained<pretrained::SentenceEncoder>(c.path);
  pretrained::save(loaded, c.folder / "saved");
  CHECK(pretrained::load_pretrained<pretrained::SentenceEncoder>(c.folder / "saved").model->texts().longest == 4);
  for (const std::string longest : {"0", "27"}) {
    test::spit(c.path / "sentence_bert_config.json", fmt::format(R"({{"max_seq_length": {}}})", longest));
    const test::Failure failure = test::failure_of([&] { (void)embedder(); });
    CHECK(failure.label == "config_value");
    CHECK_THAT(failure.text, Contains("sentence_bert_config.json") && Contains("max_seq_length"));
  }
}

TEST_CASE("embedder: an empty list gives no embeddings, and a batch size of zero is rejected") {
  const Case c;
  test::KernelStore store;
  CHECK(pretrained::Embedder::load(c.path, {.cache = &store}).embed({}).shape() == std::vector<std::int64_t>{0, 32});
  CHECK(test::failure_of([&] { (void)c.vectors({.batch = 0}); }).label == "embed_batch");
}

TEST_CASE("config_sentence_transformers.json: every key changes the embeddings or similarities, or is harmless") {
  const Case c;
  test::KernelStore store;
  const auto with = [&](const std::string& json) {
    test::spit(c.path / "config_sentence_transformers.json", json);
    return pretrained::Embedder::load(c.path, {.dtype = f64, .cache = &store});
  };
  const auto refusal = [&](const std::string& json) { return test::failure_of([&] { (void)with(json); }).text; };
  const std::vector<std::string> text{"t9 t5"}, prompted{"t3 t4 t9 t5"};
  const std::string prompts = R"("prompts": {"query": "t3 t4 ", "passage": ""})";
  const HostTensor plain = with("{}").embed(text), query = with("{}").embed(prompted);
  CHECK(test::error_of(with("{" + prompts + R"(, "default_prompt_name": "query"})").embed(text), query) == 0);
  pretrained::Embedder named = with("{" + prompts + "}");
  CHECK(test::error_of(named.embed(text), plain) == 0);
  CHECK(test::error_of(named.embed(text, named.model().texts().prompt("query")), query) == 0);
  CHECK_THAT(refusal(R"({"default_prompt_name": "query"})"), Contains("default_prompt_name is \"query\""));
  CHECK(with(R"({"similarity_fn_name": "dot"})").model().texts().similarity == pretrained::Similarity::dot);
  CHECK_THAT(refusal(R"({"similarity_fn_name": "maxsim"})"), Contains("similarity_fn_name is \"maxsim\""));
  const HostTensor few = with(R"({"truncate_dim": 5})").embed(text);
  REQUIRE(few.shape() == std::vector<std::int64_t>{1, 5});
  for (std::int64_t i = 0; i < 5; ++i) CHECK(few.get(i) == plain.get(i));
  CHECK_THAT(refusal(R"({"model_type": "SparseEncoder"})"), Contains("model_type is \"SparseEncoder\""));
  CHECK(test::error_of(with(R"({"model_type": "SentenceTransformer", "__version__": {"pytorch": "2"}})").embed(text),
                       plain) == 0);
  CHECK_THAT(refusal(R"({"propmts": {"a": "b"}})"), Contains("propmts"));
}

TEST_CASE("similarities of embeddings by dot product and distances") {
  using pretrained::Similarity;
  const HostTensor vectors = HostTensor::from({2, 2}, {3, 4, 0, 1}, f64);
  const auto of = [&](Similarity how) { return pretrained::similarities(vectors, how); };
  CHECK(of(Similarity::dot).get(1) == 4);
  CHECK(of(Similarity::dot).get(0) == 25);
  CHECK(of(Similarity::euclidean).get(2) == Approx(-std::sqrt(18.0)));
  CHECK(of(Similarity::manhattan).get(1) == -6);
  CHECK(of(Similarity::manhattan).get(3) == 0);
}

TEST_CASE("cosine similarities match the definition, and are 0 for a zero vector") {
  const HostTensor cosines =
      pretrained::cosine_similarities(HostTensor::from({4, 2}, {3, 4, -4, 3, 6, 8, 0, 0}, f64));
  const std::vector<double> wanted{1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0};
  REQUIRE(cosines.shape() == std::vector<std::int64_t>{4, 4});
  for (std::int64_t i = 0; i < 16; ++i)
    CHECK(cosines.get(i) == Approx(wanted[static_cast<std::size_t>(i)]).margin(1e-12));
}
