#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/text/tokenizer/model/merges.h"
#include "runtime/text/tokenizer/model/model.h"

namespace lathe::text {

/// The tokens of single characters.
class CharacterIds {
 public:
  explicit CharacterIds(const TokenTable& tokens);
  /// -1: none.
  TokenId find(char32_t code) const {
    const std::uint32_t page = pages_[code / page_size];
    return page == 0 ? -1 : ids_[(page - 1) * page_size + code % page_size];
  }

 private:
  static constexpr std::size_t page_size = 256;
  std::array<std::uint32_t, 0x110000 / page_size> pages_{};  ///< 1 + number of a page; 0: no token
  std::vector<TokenId> ids_;
};

/// Byte-pair encoding: characters, or bytes of GPT-2's alphabet, are merged pair by pair.
class Bpe : public Model {
 public:
  explicit Bpe(const Fields& fields);

  bool takes_bytes() const override { return takes_bytes_; }
  void tokenize(std::string_view word, bool is_bytes, WordCache& cache, std::vector<ModelToken>& out) const override;

 private:
  struct Affixes {
    std::string prefix;  ///< of characters but the first of a word
    std::string suffix;  ///< of the last character
  };
  class Symbolizer;
  class SegmentMerger;

  void read_merges(const JsonNode& place);
  void set_merge(const JsonNode& place, std::size_t index, std::string_view left, std::string_view right);
  void find_joints();
  /// Whether long words are cut at joints_ before they are merged.
  bool cuts_words() const;
  std::optional<TokenId> whole_word(std::string_view word, bool is_bytes) const;
  template <class Put>
  void for_each_symbol(std::string_view word, bool is_bytes, const Put& put) const;

  Affixes affixes_;
  std::string unknown_;  ///< the token's text; empty: none, what is unknown is dropped
  bool fuses_unknown_, falls_back_to_bytes_, ignores_merges_;
  std::array<TokenId, 256> fallback_{};  ///< <0x00> to <0xFF>; -1: none
  bool has_all_fallbacks_ = true;
  CharacterIds characters_;
  bool takes_bytes_ = false;
  std::array<TokenId, 256> bytes_{};  ///< tokens of GPT-2's alphabet
  StringMap words_of_bytes_;          ///< tokens by the bytes that they stand for
  MergeTable merges_;
  std::vector<std::array<TokenId, 3>> merged_;  ///< left, right, result
  PairMap<char> joints_;                        ///< pairs of first symbols that some merge can bring into one token
};

}  // namespace lathe::text
