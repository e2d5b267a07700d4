#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "models/text/tokenizer/tokenizer.h"
#include "tests/runtime/files/files_scratch.h"

/// Untrusted files that would exhaust memory or run for hours.
using namespace lathe;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// A tokenizer of single letters, with changes to tokenizer.json.
Tokenizer made(const json& changes) {
  json tree = {{"version", "1.0"},          {"truncation", nullptr},
               {"padding", nullptr},        {"added_tokens", json::array()},
               {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
               {"post_processor", nullptr}, {"decoder", nullptr}};
  tree["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false},
                   {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {" ", 3}}},
                   {"merges", json::array()}};
  for (const auto& [key, value] : changes.items()) {
    if (key == "model")
      tree[key].update(value);
    else
      tree[key] = value;
  }
  return Tokenizer::parse(tree.dump(), "tokenizer.json");
}

json replace(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}
json sequence(const char* kind, const json& part, std::size_t count) {
  return {{"type", "Sequence"}, {kind, json(count, part)}};
}
json split(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}
json added(const std::string& content) {
  return {{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", false}};
}

test::Failure failure(const json& changes, const std::string& text) {
  return test::failure_of([&] { (void)made(changes).encode(text); });
}

}  // namespace

TEST_CASE("tokenizer limits: regular expressions that exceed the work limit are errors") {
  const std::string letters = std::string(300'000, 'a') + " b";
  const char* const patterns[] = {"(?=(a+))\\1b",   "a*?a*?a*?a*?b|c",    "a+b|a",    "(a|a)+b",  "(?:a+)+b",
                                  "(a?){40}a{40}b", "^(.+)\\1b|(.+)\\2c", "a{2000}b", "(?=a+b)a", "(?>a+b)|a"};
  for (const char* pattern : patterns) {
    INFO(pattern);
    const test::Failure failed = failure({{"pre_tokenizer", split(pattern)}}, letters);
    CHECK(failed.label == "tokenizer_regex");
    CHECK_THAT(failed.text, Contains("tokenizer.json: pre_tokenizer.pattern.Regex"));
  }
  CHECK(failure({{"pre_tokenizer", split("a{2001}")}}, "a").label == "tokenizer_regex");
}

TEST_CASE("tokenizer limits: the patterns of known tokenizers handle texts of one repeated character") {
  const char* const patterns[] = {
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"(\s?\p{L}+|\s?\p{P}+|\p{N})"};
  for (const char* pattern : patterns)
    for (const char* character : {"a", "A", " ", "\n", "é", "1", "("}) {
      std::string text;
      for (int i = 0; i < 100'000; ++i) text += character;
      INFO(pattern << " on " << character);
      CHECK(failure({{"pre_tokenizer", split(pattern)}}, text + " b").label == "no error");
    }
}

TEST_CASE("tokenizer limits: steps that expand a text too much are errors that name the step") {
  const std::string text(200'000, 'a');
  const auto named = [](const test::Failure& failed, const char* place) {
    CHECK(failed.label == "tokenizer_limit");
    CHECK_THAT(failed.text, Contains(place));
  };
  const json growing = replace("a", std::string(10, 'a')), prefix = {{"type", "Prepend"}, {"prepend", "b"}};
  named(failure({{"normalizer", sequence("normalizers", growing, 12)}}, "a"),
        "tokenizer.json: normalizer.normalizers[7]");
  named(failure({{"normalizer", sequence("normalizers", prefix, 1000)}}, text), "normalizer.normalizers[");
  named(failure({{"normalizer", replace("a", std::string(1 << 20, 'b'))}}, text), "tokenizer.json: normalizer:");
  const json alphabet = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  named(failure({{"pre_tokenizer", sequence("pretokenizers", alphabet, 40)}}, "é"), "pre_tokenizer.pretokenizers[");
  CHECK(failure({{"normalizer", sequence("normalizers", prefix, 1000)}}, "abc").label == "no error");
}

TEST_CASE("tokenizer limits: decoders that multiply the length of a text are rejected") {
  const json doubling = replace("a", "aa");
  const auto with = [&](std::size_t count) {
    return test::failure_of([&] { (void)made({{"decoder", sequence("decoders", doubling, count)}}); });
  };
  CHECK(with(6).label == "no error");
  CHECK(with(8).label == "tokenizer_limit");
  CHECK_THAT(with(8).text, Contains("tokenizer.json: decoder.decoders[6]"));
  const json fuse = {{"type", "Fuse"}};
  CHECK(test::failure_of([&] { (void)made({{"decoder", sequence("decoders", fuse, 1000)}}); }).label ==
        "tokenizer_limit");
}

TEST_CASE("tokenizer limits: added tokens are found in linear time") {
  const std::string letters(100'000, 'a');
  const Tokenizer tokenizer = made({{"added_tokens", {added("a"), added(letters + "b")}}});
  CHECK(tokenizer.encode(letters).ids == std::vector<TokenId>(letters.size(), 0));
  CHECK(tokenizer.encode(letters + "b").ids == std::vector<TokenId>{4});
}

TEST_CASE("tokenizer limits: added tokens of many megabytes are an error") {
  json tokens = json::array();
  for (int i = 0; i < 20; ++i) tokens.push_back(added(std::string(1 << 20, 'a') + std::to_string(i)));
  const test::Failure failed = test::failure_of([&] { (void)made({{"added_tokens", tokens}}); });
  CHECK(failed.label == "tokenizer_limit");
  CHECK_THAT(failed.text, Contains("tokenizer.json: added_tokens[15]"));
}

TEST_CASE("tokenizer limits: the leftmost added token wins, the longest of those at one position") {
  std::mt19937_64 random(3);
  const auto word = [&](std::size_t most) {
    std::string made;
    for (std::size_t i = 1 + random() % most; i > 0; --i) made.push_back("xyz"[random() % 3]);
    return made;
  };
  for (int round = 0; round < 200; ++round) {
    json tokens = json::array();
    std::vector<std::string> contents;
    for (int i = 0; i < 5; ++i) contents.push_back(word(4));
    for (const std::string& content : contents) tokens.push_back(added(content));
    const Tokenizer tokenizer = made({{"added_tokens", tokens}});
    const std::string text = word(30);
    std::vector<TokenId> expected;
    for (std::size_t at = 0; at < text.size();) {
      std::string longest;
      for (const std::string& content : contents)
        if (text.compare(at, content.size(), content) == 0 && content.size() > longest.size()) longest = content;
      if (!longest.empty()) expected.push_back(*tokenizer.id_of(longest));
      at += std::max<std::size_t>(longest.size(), 1);
    }
    INFO(text << " with " << tokens);
    CHECK(tokenizer.encode(text).ids == expected);  // other letters have no tokens
  }
}

TEST_CASE("tokenizer limits: a word that takes too long to tokenize is an error") {
  const std::string letters(100'000, 'a');
  const json unigram = {{"type", "Unigram"},
                        {"unk_id", 0},
                        {"vocab", json::array({{"<unk>", 0.0}, {"a", -1.0}, {letters + letters, -2.0}})},
                        {"byte_fallback", false}};
  const auto with = [&](const json& model, const std::string& text) {
    json changed = {{"version", "1.0"}, {"model", model}};
    return test::failure_of([&] { (void)Tokenizer::parse(changed.dump(), "tokenizer.json").encode(text); });
  };
  CHECK(with(unigram, letters).label == "tokenizer_limit");
  CHECK(with(unigram, "aaaa").label == "no error");
  // Up to the limit, a token of megabytes is compared at the speed of memory: in 0.3 s here, and in 30 s byte by
  // byte.
  json long_token = unigram;
  long_token["vocab"].push_back({std::string(4'000'000, 'a'), -3.0});
  const std::clock_t start = std::clock();
  CHECK(with(long_token, std::string(1'000'000, 'a')).label == "tokenizer_limit");
  CHECK(std::clock() - start < 10 * CLOCKS_PER_SEC);
  const json pieces = {{"type", "WordPiece"},
                       {"unk_token", "a"},
                       {"continuing_subword_prefix", "##"},
                       {"max_input_chars_per_word", 1000000},
                       {"vocab", {{"a", 0}, {"##a", 1}, {"##" + letters + "b", 2}}}};
  CHECK(with(pieces, letters).label == "tokenizer_limit");
}

TEST_CASE("tokenizer limits: merges in any order load in one pass") {
  // Each pass over merges from the longest to the shortest would only resolve one of them.
  json vocabulary = {{"b", 0}}, merges = json::array();
  const std::size_t longest = 3000;
  for (std::size_t i = 1; i <= longest; ++i) vocabulary[std::string(i, 'a')] = i;
  for (std::size_t i = longest; i > 1; --i) merges.push_back({std::string(i - 1, 'a'), "a"});
  for (char32_t first = 0x4e00; first < 0x4e00 + 200; ++first) {
    const auto letter = [](char32_t code) {
      return std::string{static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
                         static_cast<char>(0x80 | (code & 0x3F))};
    };
    vocabulary[letter(first)] = vocabulary.size();
    for (char32_t second = 0x4e00; second < 0x4e00 + 200; ++second) {
      if (second > first) continue;
      vocabulary[letter(first) + letter(second)] = vocabulary.size();
      merges.push_back({letter(first), letter(second)});
    }
  }
  const Tokenizer tokenizer = made({{"model", {{"vocab", vocabulary}, {"merges", merges}}}});
  CHECK(tokenizer.encode("aaaa").ids == std::vector<TokenId>{4});
  CHECK(tokenizer.encode(std::string(100, 'a')).ids == std::vector<TokenId>{100});
}

TEST_CASE("tokenizer limits: padding and truncation sizes are bounded") {
  const json padding = {{"strategy", {{"Fixed", 2147483647}}},
                        {"direction", "Right"},
                        {"pad_to_multiple_of", nullptr},
                        {"pad_id", 0},
                        {"pad_type_id", 0},
                        {"pad_token", "a"}};
  const test::Failure fixed = test::failure_of([&] { (void)made({{"padding", padding}}); });
  CHECK(fixed.label == "tokenizer_field");
  CHECK_THAT(fixed.text, Contains("padding.strategy.Fixed"));
  json multiple = padding;
  multiple["strategy"] = "BatchLongest";
  multiple["pad_to_multiple_of"] = 2147483647;
  CHECK_THAT(test::failure_of([&] { (void)made({{"padding", multiple}}); }).text, Contains("pad_to_multiple_of"));
  const Tokenizer tokenizer = made(json::object());
  for (const Padding& size : {Padding{.length = SIZE_MAX}, Padding{.multiple_of = SIZE_MAX},
                              Padding{.length = longest_padding, .multiple_of = longest_padding - 1}})
    CHECK(test::failure_of([&] { (void)tokenizer.encode("a", {.padding = size}); }).label == "tokenizer_limit");
  const std::string text(200'000, 'a');
  const auto strided = [&](std::size_t stride) {
    return test::failure_of([&] {
             (void)tokenizer.encode(text, {.truncation = Truncation{.max_length = 5000, .stride = stride}});
           })
        .label;
  };
  CHECK(strided(4999) == "tokenizer_truncation");
  CHECK(strided(2500) == "no error");
}

TEST_CASE("tokenizers: bytes of a suffix or prefix belong to the end of the word") {
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = byte;
  vocabulary["a"] = 256, vocabulary["a</w>"] = 257;
  const json model = {{"vocab", vocabulary}, {"byte_fallback", true}, {"end_of_word_suffix", "</w>"}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  const json roberta = {{"type", "RobertaProcessing"},
                        {"sep", {"a", 256}},
                        {"cls", {"a", 256}},
                        {"trim_offsets", true},
                        {"add_prefix_space", true}};
  for (const json& processor : {bytes, roberta}) {
    const Tokenizer tokenizer = made({{"model", model}, {"post_processor", processor}});
    const Encoding encoding = tokenizer.encode("é", {.special_tokens = false});
    CHECK(encoding.ids == std::vector<TokenId>{195, 169, 60, 47, 119, 62});
    for (const TextRange& range : encoding.offsets) CHECK(range == TextRange{0, 1});
    CHECK(tokenizer.encode("a", {.special_tokens = false}).ids == std::vector<TokenId>{257});
  }
  json prefixed = model;
  prefixed["end_of_word_suffix"] = nullptr;
  prefixed["continuing_subword_prefix"] = "##";
  const Tokenizer tokenizer =
      made({{"model", prefixed}, {"post_processor", bytes}, {"pre_tokenizer", {{"type", "Whitespace"}}}});
  const Encoding encoding = tokenizer.encode("aé a");
  CHECK(encoding.ids == std::vector<TokenId>{256, 35, 35, 195, 169, 256});
  CHECK(encoding.offsets == std::vector<TextRange>{{0, 1}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {3, 4}});
}
