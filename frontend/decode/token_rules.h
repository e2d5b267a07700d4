#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lathe {

/// Rules that exclude or force the next token. Each has the meaning of the logits processor of the same name in the
/// library transformers, and they are applied in its order, after the repetition penalty and before the temperature.
struct TokenRules {
  std::int64_t no_repeat_ngram_size = 0;  ///< no n-gram of this size occurs twice, the prompt included; 0: off
  std::vector<std::vector<std::int64_t>> bad_words = {};  ///< token sequences that are never completed
  std::int64_t min_length = 0;                            ///< no end token before this length, the prompt included
  std::int64_t min_new_tokens = 0;                        ///< no end token before this number of new tokens
  std::optional<std::int64_t> forced_bos_token = {};      ///< the token after the first one of a sequence
  std::vector<std::int64_t> forced_eos_tokens = {};  ///< the last token of a sequence of the longest length is one
  std::vector<std::int64_t> suppress_tokens = {};    ///< never generated
  std::vector<std::int64_t> begin_suppress_tokens = {};  ///< not generated as the first new token

  /// Whether any rule is set.
  bool any() const;
};

/// A sequence that the next token is chosen for.
struct PartialSequence {
  std::span<const std::int64_t> tokens;  ///< the prompt, or the start token of a decoder with an encoder, and what
                                         ///< has been generated
  std::int64_t prompt = 0;               ///< how many of `tokens` were not generated
  std::int64_t longest = 0;              ///< the largest length that the sequence may reach
  std::span<const std::int64_t> end_tokens = {};
};

/// Throws UserError [decoding_options] for negative sizes, negative tokens, empty bad words, or where all forced
/// tokens are suppressed. `vocabulary`: forced tokens and bad words have to be below it.
void check(const TokenRules& rules, std::int64_t vocabulary);

/// Sets the logits of excluded tokens to -inf. Logits may be log-probabilities, as in a beam search.
void apply(const TokenRules& rules, const PartialSequence& sequence, std::span<double> logits);

}  // namespace lathe
