#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/text/tokenizer/model/merges.h"
#include "models/text/tokenizer/model/model.h"

namespace lathe::text {

/// Token ids of single characters.
class CharacterIds {
 public:
  explicit CharacterIds(const TokenTable& tokens);
  /// Returns -1 for characters without a token.
  TokenId find(char32_t code) const {
    const std::uint32_t page = pages_[code / page_size];
    return page == 0 ? -1 : ids_[(page - 1) * page_size + code % page_size];
  }

 private:
  static constexpr std::size_t page_size = 256;
  std::array<std::uint32_t, 0x110000 / page_size> pages_{};  ///< 1 + page number; 0: no tokens
  std::vector<TokenId> ids_;
};

/// Byte-pair encoding: merges pairs of characters, or of bytes in GPT-2's alphabet.
class Bpe : public Model {
 public:
  explicit Bpe(const Fields& fields);

  bool takes_bytes() const override { return takes_bytes_; }
  void tokenize(std::string_view word, bool is_bytes, WordCache& cache, std::vector<ModelToken>& out) const override;

 private:
  struct Affixes {
    std::string prefix;  ///< of all characters except a word's first
    std::string suffix;  ///< of a word's last character
  };
  class Symbolizer;
  class SegmentMerger;

  void read_merges(const JsonNode& place);
  void set_merge(const JsonNode& place, std::size_t index, std::string_view left, std::string_view right);
  void find_joints();
  /// Returns whether long words are split at joints_ before merging.
  bool cuts_words() const;
  std::optional<TokenId> whole_word(std::string_view word, bool is_bytes) const;
  template <class Put>
  void for_each_symbol(std::string_view word, bool is_bytes, const Put& put) const;

  Affixes affixes_;
  std::string unknown_;  ///< text of the unknown token; if empty, unknown characters are dropped
  bool fuses_unknown_, falls_back_to_bytes_, ignores_merges_;
  std::array<TokenId, 256> fallback_{};  ///< <0x00> to <0xFF>; -1: none
  bool has_all_fallbacks_ = true;
  CharacterIds characters_;
  bool takes_bytes_ = false;
  std::array<TokenId, 256> bytes_{};  ///< tokens of the characters in GPT-2's alphabet
  StringMap words_of_bytes_;          ///< tokens by the bytes that they represent
  MergeTable merges_;
  std::vector<std::array<TokenId, 3>> merged_;  ///< left, right, result
  PairMap<char> joints_;                        ///< pairs of initial symbols that some merge can join
};

}  // namespace lathe::text
