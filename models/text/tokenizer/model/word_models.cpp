#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/text/tokenizer/model/byte_trie.h"
#include "models/text/tokenizer/model/model.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"

namespace lathe::text {

namespace {

/// Greedy longest-match tokenizer: takes the longest token that starts the rest of the word. If none does, the whole
/// word is unknown.
class WordPiece : public Model {
 public:
  explicit WordPiece(const Fields& fields)
      : Model(TokenTable(fields.get("vocab"))),
        unknown_(fields.get("unk_token").string()),
        longest_(static_cast<std::size_t>(fields.get("max_input_chars_per_word").count(INT64_MAX))) {
    const std::string prefix = fields.get("continuing_subword_prefix").string();
    for (TokenId id = 0; id < tokens().end(); ++id) {
      if (!tokens().has(id)) continue;
      const std::string_view text = tokens().text(id);
      starts_.set(text, id);
      if (text.starts_with(prefix)) continuations_.set(text.substr(prefix.size()), id);
    }
  }

  void tokenize(std::string_view word, bool, WordCache&, std::vector<ModelToken>& out) const override {
    const std::size_t first = out.size();
    bool is_known = word.size() <= longest_ || count_characters(word) <= longest_;
    std::size_t steps = 0;
    for (std::size_t at = 0; is_known && at < word.size();) {
      ModelToken longest{-1, static_cast<std::uint32_t>(at), 0};
      const ByteTrie& tokens_here = at == 0 ? starts_ : continuations_;
      steps += tokens_here.for_each_prefix(word, at, [&](std::size_t end, TokenId id) {
        longest.id = id;
        longest.end = static_cast<std::uint32_t>(end);
      });
      check_steps(steps, word);
      is_known = longest.id >= 0;
      out.push_back(longest);
      at = longest.end;
    }
    if (is_known) return;
    out.resize(first);
    out.push_back({unknown_token(unknown_), 0, static_cast<std::uint32_t>(word.size())});
  }

 private:
  std::string unknown_;
  std::size_t longest_;     ///< maximum number of characters in a word
  ByteTrie starts_;         ///< tokens
  ByteTrie continuations_;  ///< tokens with the prefix, stored without it
};

/// Whole words are tokens.
class WordLevel : public Model {
 public:
  explicit WordLevel(const Fields& fields)
      : Model(TokenTable(fields.get("vocab"))), unknown_(fields.get("unk_token").string()) {}

  void tokenize(std::string_view word, bool, WordCache&, std::vector<ModelToken>& out) const override {
    const auto found = tokens().find(word);
    out.push_back({found ? *found : unknown_token(unknown_), 0, static_cast<std::uint32_t>(word.size())});
  }

 private:
  std::string unknown_;
};

}  // namespace

std::unique_ptr<const Model> read_word_piece(const JsonNode& place) {
  return std::make_unique<WordPiece>(
      Fields(place, {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
}

std::unique_ptr<const Model> read_word_level(const JsonNode& place) {
  return std::make_unique<WordLevel>(Fields(place, {"unk_token", "vocab"}));
}

}  // namespace lathe::text
