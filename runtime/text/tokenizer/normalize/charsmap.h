#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/normalize/aligned_text.h"
#include "runtime/text/tokenizer/pipeline/fields.h"
#include "runtime/text/tokenizer/pipeline/text_budget.h"

namespace lathe::text {

/// The character map of SentencePiece: a double-array trie (Darts) of texts and what stands in for each.
class CharsMap {
 public:
  /// A string in base64. UserError [tokenizer_charsmap].
  explicit CharsMap(const JsonNode& place);
  CharsMap(const CharsMap&) = delete;
  CharsMap& operator=(const CharsMap&) = delete;

  /// `source` with the map applied as tokenizers does: to grapheme clusters below 6 bytes, by the shortest text of
  /// the map that they start with, and to the characters of the others.
  /// UserError [tokenizer_limit], naming `place`, for more than the budget has.
  AlignedText apply(AlignedText source, const TextBudget& budget, std::string_view place) const;

 private:
  std::optional<std::string_view> find(std::string_view text) const;
  std::optional<std::string_view> find_in_trie(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;                                ///< texts that end in NUL
  std::array<std::optional<std::string_view>, 128> ascii_;  ///< what stands in for single bytes
};

}  // namespace lathe::text
