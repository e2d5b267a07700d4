#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/encoding.h"
#include "models/text/tokenizer/normalize/aligned_text.h"

namespace lathe::text {

/// Bytes [begin, end) of a text: a word for the model, or an added token.
struct Word {
  std::uint32_t begin = 0, end = 0;
  TokenId added = -1;  ///< the added token's id
};

/// A text and its words, which are nonempty and in order. Text between words is dropped.
struct Words {
  AlignedText text;
  std::vector<Word> words;
  /// Each byte represents its character in GPT-2's byte alphabet; the text is not converted to that alphabet.
  bool is_byte_level = false;

  std::string_view text_of(const Word& word) const { return text.text().substr(word.begin, word.end - word.begin); }
};

/// Treatment of the matches that split a word.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// A part of a word.
struct Part {
  std::uint32_t begin = 0, end = 0;
  bool is_match = false;
};

/// Merges the parts of a word according to the behavior and appends the remaining ones as words. `shift` is the start
/// of the word.
void append_parts(std::vector<Word>& words, std::vector<Part>& parts, SplitBehavior behavior, std::uint32_t shift);

/// Splits all words except added tokens. find(text, found) calls found(begin, end) for each match in a word's text.
template <class Find>
void split_words(Words& words, SplitBehavior behavior, bool inverts, const Find& find) {
  std::vector<Word> result;
  result.reserve(words.words.size() * 2);
  std::vector<Part> parts;
  for (const Word& word : words.words) {
    if (word.added >= 0) {
      result.push_back(word);
      continue;
    }
    const auto add = [&](std::size_t begin, std::size_t end, bool is_match) {
      const auto first = static_cast<std::uint32_t>(begin), last = static_cast<std::uint32_t>(end);
      if (behavior > SplitBehavior::isolated) {
        parts.push_back({first, last, is_match});
      } else if (begin != end && !(is_match && behavior == SplitBehavior::removed)) {
        result.push_back({word.begin + first, word.begin + last});
      }
    };
    const std::string_view text = words.text_of(word);
    std::size_t done = 0;
    find(text, [&](std::size_t begin, std::size_t end) {
      if (begin != done) add(done, begin, inverts);
      add(begin, end, !inverts);
      done = end;
    });
    if (done != text.size()) add(done, text.size(), inverts);
    append_parts(result, parts, behavior, word.begin);
    parts.clear();
  }
  words.words = std::move(result);
}

/// Rewrites all words except added tokens. write(out, word) writes the replacement of a word.
template <class Write>
void rewrite_words(Words& words, const Write& write) {
  AlignedWriter out(words.text.origin(), words.text.text().size() + words.words.size());
  for (Word& word : words.words) {
    const auto begin = static_cast<std::uint32_t>(out.size());
    if (word.added >= 0) {
      out.copy(words.text, word.begin, word.end);
    } else {
      write(out, word);
    }
    word.begin = begin;
    word.end = static_cast<std::uint32_t>(out.size());
  }
  words.text = out.finish();
}

}  // namespace lathe::text
