#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/added/text_matcher.h"
#include "models/text/tokenizer/added_token.h"
#include "models/text/tokenizer/model/token_table.h"
#include "models/text/tokenizer/normalize/normalizer.h"
#include "models/text/tokenizer/pipeline/fields.h"
#include "models/text/tokenizer/split/words.h"

namespace lathe::text {

/// The added tokens of tokenizer.json. They are found before the model runs: tokens with `normalized` in the
/// normalizer's output, the others in the original text.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// As in `tokenizers`, a token in the model's vocabulary keeps the model's id. The others are numbered from the
  /// model's size on, regardless of the ids in the file. Throws UserError [tokenizer_field];
  /// [tokenizer_limit] for more than 16 MiB of added tokens.
  AddedTokens(const JsonNode& place, const TokenTable& model, const Normalizer* normalizer);

  const std::map<TokenId, AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(std::string_view content) const;
  /// Returns the text that decoders receive for an added token: its normalized text.
  std::string_view decoded_text(TokenId id) const { return decoded_.at(id); }
  /// Returns whether `text` is a special token.
  bool is_special(std::string_view text) const { return special_.find(text).has_value(); }

  /// Splits a text at the tokens that are not normalized.
  std::vector<Word> split_original(std::string_view text) const { return split(text, original_); }
  /// Splits normalized text at the normalized tokens.
  std::vector<Word> split_normalized(std::string_view text) const { return split(text, normalized_); }

 private:
  std::vector<Word> split(std::string_view text, const TextMatcher& matcher) const;
  static bool stands_alone(std::string_view text, const TextMatcher::Match& match);

  std::map<TokenId, AddedToken> tokens_;
  std::map<TokenId, std::string> decoded_;
  StringMap ids_, special_;
  TextMatcher original_, normalized_;
};

}  // namespace lathe::text
