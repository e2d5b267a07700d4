#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/text/chat/chat_template.h"
#include "models/text/tokenizer/config/tokenizer_config.h"
#include "models/text/tokenizer/tokenizer.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/test_data.h"

/// Every key of tokenizer_config.json: used, checked, refused or harmless.
using namespace lathe;
using Catch::Matchers::Contains;
using nlohmann::json;
using text::TokenizerKey;
using text::TokenizerKeyUse;

namespace {

/// A WordPiece tokenizer as BERT's classes write it, with a chat template that prints all special tokens.
json tokenizer_json() {
  return {{"version", "1.0"},
          {"added_tokens", json::array()},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", true},
            {"lowercase", true}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "BertPreTokenizer"}},
              {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "never"}, {"split", false}}}}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "u"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", {{"u", 0}, {"a", 1}, {"##a", 2}, {".", 3}, {"x", 4}, {"y", 5}}}}}};
}

constexpr const char* plain_template =
    "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ sep_token }}{{ pad_token }}{{ cls_token }}{{ mask_token }}"
    "{{ messages | length }}";

/// Returns the tokens, the decoded text, the truncation side and the chat text for a directory.
std::string results(const json& config, const json& tokenizer) {
  const test::ScratchFolder folder;
  test::spit(folder / "tokenizer.json", tokenizer.dump());
  test::spit(folder / "tokenizer_config.json", config.dump());
  const Tokenizer loaded = Tokenizer::load(folder.path());
  CHECK(loaded.json() == tokenizer.dump());
  std::string all = fmt::format("side {} ", static_cast<int>(loaded.truncation_side()));
  const Encoding encoding = loaded.encode("a . [new] aa", {.special_tokens = false});
  for (const TokenId id : encoding.ids) all += fmt::format("{} ", id);
  all += loaded.decode(encoding.ids, false) + " " + loaded.decode(encoding.ids, true);
  const ChatTemplates chat = ChatTemplates::load(folder.path());
  return all + chat.get().render(std::vector<ChatMessage>{{"user", "a"}}).text;
}

json plain() { return {{"chat_template", plain_template}, {"tokenizer_class", "BertTokenizer"}}; }

/// A non-default value, the settings that it needs, and changes of tokenizer.json.
struct Sample {
  json value, others = json::object(), model = nullptr;
};

const std::map<std::string, Sample>& samples() {
  const json merged = {{"type", "BPE"}, {"vocab", {{"a", 0}, {" ", 1}, {".", 2}}}, {"merges", json::array()}};
  static const std::map<std::string, Sample> all{
      {"added_tokens_decoder", {{{"6", {{"content", "[new]"}, {"special", true}}}}}},
      {"additional_special_tokens", {json::array({"[new]"})}},
      {"bos_token", {"[new]"}},
      {"chat_template", {"other"}},
      {"clean_up_tokenization_spaces", {true}},
      {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
       {true, {{"clean_up_tokenization_spaces", true}}, merged}},
      {"cls_token", {{{"content", "[new]"}}}},
      {"eos_token", {"[new]"}},
      {"extra_special_tokens", {{{"image_token", "[new]"}}}},
      {"mask_token", {"[new]"}},
      {"model_specific_special_tokens", {{{"image_token", "[new]"}}}},
      {"pad_token", {"[new]"}},
      {"sep_token", {"[new]"}},
      {"truncation_side", {"left"}},
      {"unk_token", {"[new]"}},
      {"add_prefix_space", {true}},
      {"do_lower_case", {false}},
      {"strip_accents", {false}},
      {"tokenize_chinese_chars", {false}},
  };
  return all;
}

void check_rule(const TokenizerKey& rule) {
  const std::string key(rule.key);
  INFO(key);
  json with = plain(), tokenizer = tokenizer_json();
  const auto sample = samples().find(key);
  if (sample != samples().end()) {
    with.update(sample->second.others);
    if (!sample->second.model.is_null()) tokenizer["model"] = sample->second.model;
  }
  const std::string before = results(with, tokenizer);
  with[key] = sample != samples().end() ? sample->second.value : json("x");
  if (rule.use == TokenizerKeyUse::used) {
    REQUIRE(sample != samples().end());
    CHECK(results(with, tokenizer) != before);
    return;
  }
  CHECK_FALSE(rule.reason.empty());
  if (rule.use == TokenizerKeyUse::harmless) {
    CHECK(results(with, tokenizer) == before);
    return;
  }
  const test::Failure failure = test::failure_of([&] { (void)results(with, tokenizer); });
  CHECK(failure.label == "config_value");
  CHECK_THAT(failure.text, Contains("tokenizer_config.json: " + key + " is "));
}

}  // namespace

TEST_CASE("tokenizer_config.json: every key changes a result, is rejected by name, or is harmless") {
  for (const TokenizerKey& rule : text::tokenizer_keys()) check_rule(rule);
}

TEST_CASE("tokenizer_config.json: the table has the keys of transformers") {
  const json file = json::parse(std::ifstream(test::test_data("hf/library_keys.json")));
  std::set<std::string> known;
  for (const TokenizerKey& rule : text::tokenizer_keys()) known.emplace(rule.key);
  for (const json& key : file.at("TokenizerConfig")) {
    INFO(key);
    CHECK(known.contains(key));
  }
}

TEST_CASE("tokenizer_config.json: special tokens missing from tokenizer.json are added, as in transformers") {
  const test::ScratchFolder folder;
  test::spit(folder / "tokenizer.json", tokenizer_json().dump());
  test::spit(folder / "tokenizer_config.json", R"({"pad_token": "[PAD]", "eos_token": "x", "sep_token": null,
    "added_tokens_decoder": {"7": {"content": "[two]", "normalized": true}, "6": {"content": "[one]"}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  CHECK(tokenizer.id_of("[one]") == 6);
  CHECK(tokenizer.id_of("[two]") == 7);
  CHECK(tokenizer.id_of("[PAD]") == 8);
  CHECK(tokenizer.id_of("x") == 4);
  CHECK(tokenizer.is_special(8));
  CHECK(tokenizer.is_special(4));
  CHECK_FALSE(tokenizer.is_special(6));
  CHECK(tokenizer.encode("a[PAD]a[one]").ids == std::vector<TokenId>{1, 8, 1, 6});
  // Without "added_tokens_decoder" the older file is used.
  test::spit(folder / "tokenizer_config.json", R"({"pad_token": "[PAD]"})");
  test::spit(folder / "special_tokens_map.json", R"({"pad_token": {"content": "[old]", "lstrip": true}})");
  const Tokenizer older = Tokenizer::load(folder.path());
  CHECK(older.id_of("[old]") == 6);
  CHECK_FALSE(older.id_of("[PAD]"));
  CHECK(older.encode("a  [old]").ids == std::vector<TokenId>{1, 6});
}

TEST_CASE("tokenizer_config.json: text is cleaned up across tokens, streamed and at once") {
  json tokenizer = tokenizer_json();
  json& vocabulary = tokenizer["model"]["vocab"];
  for (const char* word : {"n", "'", "t", "'t", "s", "?"}) vocabulary[word] = vocabulary.size();
  const auto decoded = [&](const json& config, const std::vector<TokenId>& ids) {
    const test::ScratchFolder folder;
    test::spit(folder / "tokenizer.json", tokenizer.dump());
    test::spit(folder / "tokenizer_config.json", config.dump());
    const Tokenizer loaded = Tokenizer::load(folder.path());
    Tokenizer::Stream stream = loaded.stream();
    std::string pieces;
    for (const TokenId id : ids) pieces += stream.push(id);
    pieces += stream.finish();
    CHECK(pieces == loaded.decode(ids));
    return pieces;
  };
  const std::vector<TokenId> ids{1, 3, 4, 7, 5, 11, 7, 10};  // a . x ' y ? ' s
  CHECK(decoded({{"clean_up_tokenization_spaces", false}}, ids) == "a . x ' y ? ' s");
  CHECK(decoded({{"clean_up_tokenization_spaces", true}}, ids) == "a. x'y?'s");
}

TEST_CASE(
    "tokenizer_config.json: settings that contradict tokenizer.json are errors, unless the class ignores them") {
  json config = plain();
  config["do_lower_case"] = false;
  const test::Failure failure = test::failure_of([&] { (void)results(config, tokenizer_json()); });
  CHECK(failure.label == "config_value");
  CHECK_THAT(failure.text, Contains("do_lower_case is 'false'") && Contains("'lowercase'"));
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  CHECK_NOTHROW(results(config, tokenizer_json()));
  config["do_lower_case"] = true;
  config["tokenizer_class"] = "BertTokenizer";
  CHECK_NOTHROW(results(config, tokenizer_json()));
}
