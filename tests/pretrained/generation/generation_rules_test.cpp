#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "models/generation/generator.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"
#include "tests/support/texts/word_tokenizer.h"

using namespace lathe;
using test::test_data;
using Ids = std::vector<std::int64_t>;
using Json = nlohmann::json;

namespace {

std::vector<Json> cases(const char* kind) {
  return Json::parse(std::ifstream(test_data("hf/generation.json"))).at(kind).get<std::vector<Json>>();
}

/// Returns a generator of a model of tests/hf that computes in f64; token i is the word "ti".
Generator made(const std::string& name, ObjectStore& store) {
  const auto with = [&](auto model) {
    const Tokenizer words = Tokenizer::parse(test::word_tokenizer(model.model->vocabulary_size()), "tokenizer.json");
    return Generator(std::move(model), words, {.dtype = f64, .chunk = 3, .cache = &store});
  };
  const std::filesystem::path folder = test_data("hf/models") / name / "model";
  return name == "t5" ? with(pretrained::load_pretrained<pretrained::Seq2SeqLm>(folder))
                      : with(pretrained::load_pretrained<pretrained::CausalLm>(folder));
}

GenerationOptions options_of(const Json& config) {
  const test::ScratchFolder folder;
  test::spit(folder / "generation_config.json", config.dump());
  return load_generation_options(folder.path());
}

void check_beams(Generator& generator, const Json& row, const Ids& prompt, GenerationOptions options) {
  const auto found = generator.beams(prompt, options);
  REQUIRE(found.size() == row.at("results").size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].tokens == row.at("results")[i].get<Ids>());
    CHECK(found[i].score == Approx(row.at("scores")[i].get<double>()).epsilon(1e-5));
  }
  options.beams.results = 1;
  Generation best = generator.start(std::vector<Ids>{prompt}, options);
  best.run();
  CHECK(best.tokens() == found.front().tokens);
  CHECK(best.text() == found.front().text);
}

/// Checks one text, on its own and in a batch with another one.
void check_text(Generator& generator, const Json& row, const Ids& prompt, const GenerationOptions& options) {
  const Ids wanted = row.at("results")[0].get<Ids>();
  Generation alone = generator.start(std::vector<Ids>{prompt}, options);
  alone.run();
  CHECK(alone.tokens() == wanted);
  if (options.max_length) return;
  Generation two = generator.start(std::vector<Ids>{{3, 8}, prompt}, options);
  two.run();
  CHECK(two.tokens(1) == wanted);
}

void check_model(const std::string& name) {
  test::KernelStore store;
  Generator generator = made(name, store);
  int checked = 0;
  for (const Json& row : cases("texts")) {
    if (row.at("model") != name) continue;
    INFO(name << " " << row.at("prompt") << " " << row.at("config"));
    const GenerationOptions options = options_of(row.at("config"));
    const Ids prompt = row.at("prompt").get<Ids>();
    if (options.beams.width > 1)
      check_beams(generator, row, prompt, options);
    else
      check_text(generator, row, prompt, options);
    ++checked;
  }
  CHECK(checked > 30);
}

}  // namespace

TEST_CASE("generation_config.json: texts and beams match transformers, gpt2") { check_model("gpt2"); }
TEST_CASE("generation_config.json: texts and beams match transformers, qwen3") { check_model("qwen3"); }
TEST_CASE("generation_config.json: texts and beams match transformers, gemma3") { check_model("gemma3"); }
TEST_CASE("generation_config.json: texts and beams match transformers, t5") { check_model("t5"); }

TEST_CASE("sampling: typical-p keeps the same tokens as transformers") {
  for (const Json& row : cases("typical")) {
    INFO(row);
    const Sampling sampling{.temperature = row.value("temperature", 1.0),
                            .top_k = row.value("top_k", std::int64_t{0}),
                            .top_p = row.value("top_p", 1.0),
                            .min_p = row.value("min_p", 0.0),
                            .typical_p = row.at("typical_p").get<double>()};
    const auto wanted = row.at("probabilities").get<std::vector<double>>();
    const std::vector<double> got = probabilities(row.at("logits").get<std::vector<double>>(), sampling);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(1e-9));
  }
}

TEST_CASE("generation lengths: max_new_tokens has precedence over max_length") {
  GenerationOptions options;
  CHECK(longest_sequence(options, 10, 1 << 20) == 10 + default_new_tokens);
  CHECK(longest_sequence(options, 10, 12) == 12);
  CHECK(longest_sequence(options, 12, 12) == 13);
  options.max_length = 15;
  CHECK(longest_sequence(options, 10, 1 << 20) == 15);
  CHECK_THROWS_WITH(
      longest_sequence(options, 15, 1 << 20),
      Catch::Contains("the prompt has 15 tokens, and max_length is 15") && Catch::Contains("[generation_length]"));
  options.max_new_tokens = std::numeric_limits<std::int64_t>::max();
  CHECK(longest_sequence(options, 15, 40) == 40);
  options.max_new_tokens = 3;
  CHECK(longest_sequence(options, 15, 1 << 20) == 18);
}

TEST_CASE("generation options: without generation_config.json the options of config.json apply, as in transformers") {
  const test::ScratchFolder folder;
  test::spit(folder / "config.json", R"({"model_type": "gpt2", "eos_token_id": 5, "no_repeat_ngram_size": 3})");
  CHECK(load_generation_options(folder.path()).rules.no_repeat_ngram_size == 3);
  CHECK(load_generation_options(folder.path()).stop_tokens == Ids{5});
  test::spit(folder / "generation_config.json", R"({"num_beams": 2})");
  CHECK(load_generation_options(folder.path()).rules.no_repeat_ngram_size == 0);
  CHECK(load_generation_options(folder.path()).stop_tokens == Ids{5});
  CHECK(load_generation_options(folder.path()).beams.width == 2);
}
