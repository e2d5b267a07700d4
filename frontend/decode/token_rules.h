#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lathe {

/// Rules that exclude or force the next token. Each one behaves like the logits processor of the same name in
/// transformers. They run in its order: after the repetition penalty, before the temperature.
struct TokenRules {
  std::int64_t no_repeat_ngram_size = 0;  ///< no n-gram of this size is repeated, including the prompt; 0: off
  std::vector<std::vector<std::int64_t>> bad_words = {};  ///< token sequences that are never completed
  std::int64_t min_length = 0;                            ///< no end token before this length, including the prompt
  std::int64_t min_new_tokens = 0;                        ///< no end token before this many new tokens
  std::optional<std::int64_t> forced_bos_token = {};      ///< the token at position 1 of a sequence
  std::vector<std::int64_t> forced_eos_tokens = {};       ///< one of them ends a sequence of maximum length
  std::vector<std::int64_t> suppress_tokens = {};         ///< never generated
  std::vector<std::int64_t> begin_suppress_tokens = {};   ///< not generated as the first new token

  /// Whether any rule is set.
  bool any() const;
};

/// A sequence whose next token is chosen.
struct PartialSequence {
  std::span<const std::int64_t> tokens;  ///< the prompt (encoder-decoder: the decoder's start token) and the tokens
                                         ///< generated so far
  std::int64_t prompt = 0;               ///< how many of `tokens` were given, not generated
  std::int64_t longest = 0;              ///< maximum length of the sequence
  std::span<const std::int64_t> end_tokens = {};
};

/// Throws UserError [decoding_options] for negative sizes, negative tokens, empty bad words, or if all forced tokens
/// are suppressed. Forced tokens and bad words must be less than `vocabulary`.
void check(const TokenRules& rules, std::int64_t vocabulary);

/// Sets the logits of excluded tokens to -inf. The logits may also be log-probabilities, as in a beam search.
void apply(const TokenRules& rules, const PartialSequence& sequence, std::span<double> logits);

}  // namespace lathe
