#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "models/text/tokenizer/learn/byte_level_bpe.h"
#include "runtime/files/file_io.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using nlohmann::json;

namespace {

json read_json(const std::filesystem::path& path) { return json::parse(read_file(path, std::uint64_t{1} << 26)); }

/// Returns the texts that tests/text/learned_bpe.py learns from.
std::string texts() {
  const json cases = read_json(test::test_data("hf/tokenizers/gpt2/encodings.json"));
  std::string all;
  for (const json& one : cases.at("strings")) all += one.at("text").get<std::string>() + "\n";
  all.pop_back();
  return all;
}

std::string label_of(const ByteLevelBpeOptions& options, std::string_view text = "some text") {
  return test::error_label([&] { learn_byte_level_bpe(text, options); });
}

}  // namespace

TEST_CASE("learned tokenizer: tokens and merges match the library tokenizers") {
  const json known = read_json(test::source_path("tests/text/learned_bpe.json"));
  const Tokenizer learned =
      learn_byte_level_bpe(texts(), {.vocabulary_size = 600, .special_tokens = {"<|endoftext|>", "<pad>"}});
  const json model = json::parse(learned.json()).at("model");
  CHECK(model.at("merges") == known.at("merges"));
  const auto tokens = known.at("tokens").get<std::vector<std::string>>();
  REQUIRE(model.at("vocab").size() == tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(model.at("vocab").at(tokens[i]) == i);
  const std::string text = "To be, or not to be: café 中文 😀";
  const Encoding encoding = learned.encode(text);
  CHECK(json(encoding.ids) == known.at("ids"));
  CHECK(learned.decode(encoding.ids) == text);
  CHECK(learned.is_special(1));
}

TEST_CASE("learned tokenizer: texts with few pairs, and invalid options") {
  CHECK(learn_byte_level_bpe("", {}).vocabulary_size() == 257);
  CHECK(learn_byte_level_bpe("abc", {}).vocabulary_size() == 257);
  CHECK(learn_byte_level_bpe("aaaa aaaa aaaa", {.vocabulary_size = 1000, .special_tokens = {}}).vocabulary_size() >
        257);
  CHECK(learn_byte_level_bpe("abab abab", {.vocabulary_size = 257, .special_tokens = {}}).vocabulary_size() == 257);
  CHECK(label_of({.vocabulary_size = 256}) == "tokenizer_size");
  CHECK(label_of({.special_tokens = {""}}) == "tokenizer_size");
  CHECK(label_of({.special_tokens = {"<a>", "<a>"}}) == "tokenizer_size");
  CHECK(label_of({}, "\xff") == "tokenizer_text");
}
