#include "models/generation/generation_keys.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/generation/generator.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"
#include "tests/support/texts/word_tokenizer.h"

using namespace lathe;
using Catch::Matchers::Contains;
using pretrained::KeyRule;
using pretrained::KeyUse;
using Ids = std::vector<std::int64_t>;
using Json = nlohmann::json;

namespace {

/// A non-default value, with the other keys that it needs to have an effect.
struct Sample {
  Json value, others = Json::object();
  Ids prompt = {5, 9, 17, 5, 9, 30, 11};  // continues with 77, 11, 174
};

const std::map<std::string, Sample>& samples() {
  static const Json drawn{{"do_sample", true}, {"temperature", 20.0}, {"top_k", 0}};
  static const Json beams{{"num_beams", 3}, {"eos_token_id", {11, 77}}, {"max_new_tokens", 12}};
  static const Json ending{{"num_beams", 3}, {"eos_token_id", {11, 77, 193, 302}}, {"length_penalty", 3.0}};
  static const std::map<std::string, Sample> all{
      {"bad_words_ids", {.value = Json::array({Json::array({77})})}},
      {"begin_suppress_tokens", {.value = {77}}},
      {"do_sample", {.value = true, .others = {{"temperature", 20.0}}}},
      {"early_stopping", {.value = true, .others = ending}},
      {"eos_token_id", {.value = 77}},
      {"forced_bos_token_id", {.value = 23, .prompt = {7}}},
      {"forced_eos_token_id", {.value = 41}},
      {"length_penalty", {.value = -3.0, .others = beams}},
      {"max_length", {.value = 9, .others = {{"max_new_tokens", nullptr}, {"eos_token_id", 165}}}},
      {"max_new_tokens", {.value = 3}},
      {"min_length", {.value = 12, .others = {{"eos_token_id", 77}}}},
      {"min_new_tokens", {.value = 4, .others = {{"eos_token_id", 77}}}},
      {"min_p", {.value = 0.999, .others = drawn}},
      {"no_repeat_ngram_size", {.value = 1}},
      {"num_beams", {.value = 3}},
      {"num_return_sequences", {.value = 2, .others = {{"num_beams", 3}}}},
      {"repetition_penalty", {.value = 9.0}},
      {"stop_strings", {.value = {"t11"}}},
      {"suppress_tokens", {.value = {77}}},
      {"temperature", {.value = 20.0, .others = {{"do_sample", true}}}},
      {"top_k", {.value = 1, .others = drawn}},
      {"top_p", {.value = 0.001, .others = drawn}},
      {"typical_p", {.value = 0.001, .others = drawn}},
  };
  return all;
}

GenerationOptions read(const Json& config) {
  const test::ScratchFolder folder;
  test::spit(folder / "generation_config.json", config.dump());
  return load_generation_options(folder.path());
}

/// Returns the generated texts of all results.
std::string generated(const Json& config, const Ids& prompt) {
  static test::KernelStore store;
  static Generator generator = [] {
    auto model = pretrained::load_pretrained<pretrained::CausalLm>(test::test_data("hf/models/qwen3/model"));
    const Tokenizer words = Tokenizer::parse(test::word_tokenizer(model.model->vocabulary_size()), "tokenizer.json");
    return Generator(std::move(model), words, {.cache = &store});
  }();
  Json with = config;
  if (!with.contains("max_new_tokens")) with["max_new_tokens"] = 8;
  const GenerationOptions options = read(with);
  std::string texts;
  if (options.beams.width > 1) {
    for (const Generator::BeamText& text : generator.beams(prompt, options)) texts += text.text + "\n";
    return texts;
  }
  Generation generation = generator.start(std::vector<Ids>{prompt}, options);
  generation.run();
  return generation.text() + "\n";
}

/// Returns a value that the rule does not accept.
Json refused_value(const KeyRule& rule) {
  return rule.accepted.find("false") != std::string_view::npos ? Json(true) : Json(7);
}

void check_rule(const KeyRule& rule) {
  const std::string key(rule.key);
  INFO(key);
  const Sample plain;
  switch (rule.use) {
    case KeyUse::used: {
      if (key == "decoder_start_token_id") return;  // checked below
      const Sample& sample = samples().at(key);
      Json with = sample.others;
      with[key] = sample.value;
      CHECK(generated(with, sample.prompt) != generated(sample.others, sample.prompt));
      return;
    }
    case KeyUse::harmless: {
      CHECK_FALSE(rule.reason.empty());
      CHECK(generated({{key, "x"}}, plain.prompt) == generated(Json::object(), plain.prompt));
      return;
    }
    case KeyUse::refused: {
      const test::Failure failure = test::failure_of([&] { (void)read({{key, refused_value(rule)}}); });
      CHECK(failure.label == "config_value");
      CHECK_THAT(failure.text, Contains("generation_config.json: " + key + " is "));
      for (const Json& accepted : Json::parse(rule.accepted)) CHECK_NOTHROW(read({{key, accepted}}));
      return;
    }
    case KeyUse::alias: FAIL("there are no aliases");
  }
}

}  // namespace

TEST_CASE("generation_config.json: every key changes the text, is rejected by name, or is harmless") {
  for (const KeyRule& rule : generation_keys().rules()) check_rule(rule);
}

TEST_CASE("generation_config.json: the table has the keys of transformers, and others are rejected") {
  const Json file = Json::parse(std::ifstream(test::test_data("hf/library_keys.json")));
  std::set<std::string> known;
  for (const KeyRule& rule : generation_keys().rules()) known.emplace(rule.key);
  CHECK(known == file.at("GenerationConfig").get<std::set<std::string>>());
  const test::Failure failure = test::failure_of([] { (void)read({{"temprature", 0.5}}); });
  CHECK(failure.label == "config_value");
  CHECK_THAT(failure.text, Contains("temprature"));
}

TEST_CASE("generation_config.json: a decoder starts with the token that config.json names") {
  const test::ScratchFolder folder;
  test::spit(folder / "config.json", R"({"is_encoder_decoder": true, "pad_token_id": 0})");
  test::spit(folder / "generation_config.json", R"({"decoder_start_token_id": 0})");
  CHECK_NOTHROW(load_generation_options(folder.path()));
  test::spit(folder / "generation_config.json", R"({"decoder_start_token_id": 3})");
  const test::Failure failure = test::failure_of([&] { (void)load_generation_options(folder.path()); });
  CHECK(failure.label == "config_value");
  CHECK_THAT(failure.text, Contains("decoder_start_token_id is 3"));
}

TEST_CASE("generation_config.json: unsupported combinations are rejected") {
  const auto refusal = [](const Json& config) { return test::failure_of([&] { (void)read(config); }).text; };
  CHECK_THAT(refusal({{"num_beams", 2}, {"do_sample", true}}), Contains("num_beams is 2"));
  CHECK_THAT(refusal({{"num_return_sequences", 2}}), Contains("num_return_sequences is 2"));
  CHECK_THAT(refusal({{"num_beams", 0}}), Contains("num_beams is 0"));
  CHECK_THAT(refusal({{"early_stopping", "soon"}}), Contains("early_stopping"));
  CHECK_THAT(refusal({{"max_length", 0}}), Contains("max_length is 0"));
}
