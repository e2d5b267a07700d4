#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "models/text/tokenizer/tokenizer.h"
#include "runtime/files/file_io.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using nlohmann::json;

namespace {

const char* const names[] = {"bert", "bert_cased", "gpt2", "llama2", "llama3", "mistral", "qwen2", "roberta", "t5"};

json read_json(const std::filesystem::path& path) { return json::parse(read_file(path, std::uint64_t{1} << 26)); }

std::filesystem::path folder(const std::string& name) { return test::test_data("hf/tokenizers/" + name); }

/// begin, end, begin, end, ...
std::vector<std::uint32_t> flat(const std::vector<TextRange>& ranges) {
  std::vector<std::uint32_t> all;
  for (const TextRange& range : ranges) all.insert(all.end(), {range.begin, range.end});
  return all;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip_special) {
  Tokenizer::Stream stream = tokenizer.stream(skip_special);
  std::string all;
  for (const TokenId id : ids) {
    const std::string piece = stream.push(id);
    CHECK(replace_invalid_utf8(piece) == piece);  // whole characters
    all += piece;
  }
  return all + stream.finish();
}

}  // namespace

TEST_CASE("tokenizer cases: ids, offsets and texts match tokenizers") {
  int strings = 0;
  for (const std::string name : names) {
    const Tokenizer tokenizer = Tokenizer::load(folder(name));
    const json cases = read_json(folder(name) / "encodings.json");
    for (const json& row : cases["strings"]) {
      const std::string text = row["text"];
      INFO(name << ": " << row["text"]);
      const Encoding full = tokenizer.encode(text);
      CHECK(full.ids == row["ids"].get<std::vector<TokenId>>());
      const Encoding plain = tokenizer.encode(text, {.special_tokens = false});
      CHECK(plain.ids == row["plain_ids"].get<std::vector<TokenId>>());
      CHECK(flat(plain.offsets) == row["plain_offsets"].get<std::vector<std::uint32_t>>());
      CHECK(tokenizer.encode(text, {.special_tokens = false, .offsets = false}).ids == plain.ids);
      CHECK(tokenizer.decode(full.ids, false) == row["decoded"]);
      CHECK(tokenizer.decode(full.ids, true) == row["decoded_skip"]);
      CHECK(streamed(tokenizer, full.ids, false) == row["decoded"]);
      CHECK(streamed(tokenizer, full.ids, true) == row["decoded_skip"]);
      ++strings;
    }
  }
  CHECK(strings == 2430);
}

TEST_CASE("tokenizer cases: pairs match the ids and type ids of tokenizers") {
  int pairs = 0;
  for (const std::string name : names) {
    const Tokenizer tokenizer = Tokenizer::load(folder(name));
    const json cases = read_json(folder(name) / "encodings.json");
    for (const json& row : cases["pairs"]) {
      INFO(name << ": " << row["a"] << ", " << row["b"]);
      const Encoding both = tokenizer.encode_pair(row["a"].get<std::string>(), row["b"].get<std::string>());
      CHECK(both.ids == row["ids"].get<std::vector<TokenId>>());
      CHECK(both.type_ids == row["type_ids"].get<std::vector<std::int32_t>>());
      ++pairs;
    }
  }
  CHECK(pairs == 36);
}

TEST_CASE("tokenizer cases: batches are truncated and padded like transformers") {
  int batches = 0;
  for (const std::string name : names) {
    const json cases = read_json(folder(name) / "encodings.json");
    if (!cases.contains("batch")) continue;
    INFO(name);
    const Tokenizer tokenizer = Tokenizer::load(folder(name));
    const json& batch = cases["batch"];
    const std::string pad_token = read_json(folder(name) / "tokenizer_config.json")["pad_token"];
    EncodeOptions options;
    options.truncation = Truncation{.max_length = batch["max_length"].get<std::size_t>()};
    options.padding = Padding{.side = batch["padding_side"] == "left" ? Side::left : Side::right,
                              .id = tokenizer.id_of(pad_token).value()};
    const auto texts = batch["texts"].get<std::vector<std::string>>();
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::vector<Encoding> got = tokenizer.encode_batch(views, options);
    REQUIRE(got.size() == 4);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].ids == batch["input_ids"][i].get<std::vector<TokenId>>());
      CHECK(json(got[i].attention_mask) == batch["attention_mask"][i]);
    }
    ++batches;
  }
  CHECK(batches == 7);
}
