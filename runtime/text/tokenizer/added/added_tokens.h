#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/added/text_matcher.h"
#include "runtime/text/tokenizer/added_token.h"
#include "runtime/text/tokenizer/model/token_table.h"
#include "runtime/text/tokenizer/normalize/normalizer.h"
#include "runtime/text/tokenizer/pipeline/fields.h"
#include "runtime/text/tokenizer/split/words.h"

namespace lathe::text {

/// The added tokens of tokenizer.json, which are found before a model sees the text: those that are not normalized in
/// the text as it is, the others in what the normalizer makes of it.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// As `tokenizers` does, a token that the model has keeps the model's id, and the others are numbered from the
  /// model's size on, whatever the file says. UserError [tokenizer_field].
  AddedTokens(const JsonNode& place, const TokenTable& model, const Normalizer* normalizer);

  const std::map<TokenId, AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(std::string_view content) const;
  /// What decoders see of an added token: its normalized text.
  std::string_view decoded_text(TokenId id) const { return decoded_.at(id); }
  /// Whether a token of this text is a special one.
  bool is_special(std::string_view text) const { return special_.find(text).has_value(); }

  /// Splits a text at the tokens that are not normalized.
  std::vector<Word> split_original(std::string_view text) const { return split(text, original_); }
  /// Splits normalized text at the others.
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
