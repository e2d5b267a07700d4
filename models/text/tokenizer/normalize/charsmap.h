#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/normalize/aligned_text.h"
#include "models/text/tokenizer/pipeline/fields.h"
#include "models/text/tokenizer/pipeline/text_budget.h"

namespace lathe::text {

/// SentencePiece's character map: a double-array trie (Darts) of texts and their replacements.
class CharsMap {
 public:
  /// Parses a base64 string. Throws UserError [tokenizer_charsmap].
  explicit CharsMap(const JsonNode& place);
  CharsMap(const CharsMap&) = delete;
  CharsMap& operator=(const CharsMap&) = delete;

  /// Applies the map to `source` as tokenizers does. A grapheme cluster of fewer than 6 bytes is replaced by the
  /// shortest text of the map with which it starts. Other clusters are mapped character by character. Throws
  /// UserError [tokenizer_limit], naming `place`, if the budget is exceeded.
  AlignedText apply(AlignedText source, const TextBudget& budget, std::string_view place) const;

 private:
  std::optional<std::string_view> find(std::string_view text) const;
  std::optional<std::string_view> find_in_trie(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;                                ///< NUL-terminated texts
  std::array<std::optional<std::string_view>, 128> ascii_;  ///< replacements of single bytes
};

}  // namespace lathe::text
