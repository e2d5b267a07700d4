#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>

/// Texts for tiny models whose vocabularies have no words.
namespace lathe::test {

/// Returns a tokenizer.json with `size` words "t0", "t1", .. separated by white space; word i is token i.
inline std::string word_tokenizer(std::int64_t size) {
  std::string words;
  for (std::int64_t i = 0; i < size; ++i) words += fmt::format(R"("t{0}": {0}, )", i);
  return fmt::format(
      R"({{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {{"type": "WhitespaceSplit"}}, "post_processor": null,
    "decoder": {{"type": "WordPiece", "prefix": "##", "cleanup": false}},
    "model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
               "max_input_chars_per_word": 100, "vocab": {{{}"[UNK]": {}}}}}}})",
      words, size);
}

/// Returns the text of `ids`.
template <class Id>
std::string words_of(std::span<const Id> ids) {
  std::string text;
  for (const Id id : ids) text += fmt::format("{}t{}", text.empty() ? "" : " ", id);
  return text;
}

}  // namespace lathe::test
