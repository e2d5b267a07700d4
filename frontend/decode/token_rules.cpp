#include "frontend/decode/token_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "ir/support/error.h"

namespace lathe {

namespace {

using Tokens = std::span<const std::int64_t>;
constexpr double excluded = -std::numeric_limits<double>::infinity();

bool contains(Tokens tokens, std::int64_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void exclude(std::int64_t token, std::span<double> logits) {
  if (token >= 0 && token < std::ssize(logits)) logits[token] = excluded;
}
void exclude(Tokens tokens, std::span<double> logits) {
  for (const std::int64_t token : tokens) exclude(token, logits);
}

/// Excludes all other tokens and makes these equally likely.
void force(Tokens tokens, std::span<double> logits) {
  std::fill(logits.begin(), logits.end(), excluded);
  for (const std::int64_t token : tokens) logits[token] = 0;
}

/// Excludes the tokens that would repeat an n-gram: those that followed an earlier occurrence of the last n - 1
/// tokens.
void exclude_repeated(Tokens tokens, std::int64_t n, std::span<double> logits) {
  const std::int64_t length = std::ssize(tokens);
  if (length < n) return;
  const Tokens begun = tokens.last(static_cast<std::size_t>(n - 1));
  for (std::int64_t first = 0; first + n <= length; ++first) {
    const Tokens gram = tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
    if (std::equal(begun.begin(), begun.end(), gram.begin())) exclude(gram.back(), logits);
  }
}

void exclude_bad_words(const TokenRules& rules, const PartialSequence& sequence, std::span<double> logits) {
  for (const std::vector<std::int64_t>& word : rules.bad_words) {
    // transformers ignores end tokens here; min_new_tokens excludes those.
    if (word.size() == 1 && contains(sequence.end_tokens, word.front())) continue;
    const Tokens begun = Tokens(word).first(word.size() - 1);
    if (begun.size() > sequence.tokens.size()) continue;
    const Tokens last = sequence.tokens.last(begun.size());
    if (std::equal(begun.begin(), begun.end(), last.begin())) exclude(word.back(), logits);
  }
}

[[noreturn]] void refuse(std::string_view name, std::int64_t value, std::string_view hint) {
  throw UserError(fmt::format("decoding: {} is {}", name, value), "decoding_options", hint);
}

void check_tokens(std::string_view name, Tokens tokens, std::int64_t vocabulary) {
  for (const std::int64_t token : tokens)
    if (token < 0 || token >= vocabulary)
      refuse(name, token, fmt::format("give a token of the vocabulary, 0 to {}", vocabulary - 1));
}

}  // namespace

bool TokenRules::any() const {
  return no_repeat_ngram_size > 0 || !bad_words.empty() || min_length > 0 || min_new_tokens > 0 || forced_bos_token ||
         !forced_eos_tokens.empty() || !suppress_tokens.empty() || !begin_suppress_tokens.empty();
}

void check(const TokenRules& rules, std::int64_t vocabulary) {
  for (const auto& [name, value] : {std::pair{"no_repeat_ngram_size", rules.no_repeat_ngram_size},
                                    {"min_length", rules.min_length},
                                    {"min_new_tokens", rules.min_new_tokens}})
    if (value < 0) refuse(name, value, "give 0 or more; 0 turns it off");
  for (const std::vector<std::int64_t>& word : rules.bad_words) {
    if (word.empty()) throw UserError("decoding: a bad word has no tokens", "decoding_options", "leave it out");
    check_tokens("a token of a bad word", word, vocabulary);
  }
  const auto check_forced = [&](std::string_view name, Tokens tokens) {
    check_tokens(name, tokens, vocabulary);
    const auto is_suppressed = [&](std::int64_t token) { return contains(rules.suppress_tokens, token); };
    if (!tokens.empty() && std::all_of(tokens.begin(), tokens.end(), is_suppressed))
      refuse(name, tokens.front(), "suppress_tokens excludes it: remove it from one of the two");
  };
  if (rules.forced_bos_token) check_forced("forced_bos_token", {&*rules.forced_bos_token, 1});
  check_forced("forced_eos_tokens", rules.forced_eos_tokens);
}

void apply(const TokenRules& rules, const PartialSequence& sequence, std::span<double> logits) {
  const std::int64_t length = std::ssize(sequence.tokens);
  if (rules.no_repeat_ngram_size > 0) exclude_repeated(sequence.tokens, rules.no_repeat_ngram_size, logits);
  exclude_bad_words(rules, sequence, logits);
  if (length < rules.min_length || length - sequence.prompt < rules.min_new_tokens)
    exclude(sequence.end_tokens, logits);
  if (rules.forced_bos_token && length == 1) force({&*rules.forced_bos_token, 1}, logits);
  if (!rules.forced_eos_tokens.empty() && length == sequence.longest - 1) force(rules.forced_eos_tokens, logits);
  exclude(rules.suppress_tokens, logits);
  // If a token is forced after a single start token, the first chosen token is the one after it.
  const std::int64_t begin = sequence.prompt + (sequence.prompt <= 1 && rules.forced_bos_token ? 1 : 0);
  if (length == begin) exclude(rules.begin_suppress_tokens, logits);
}

}  // namespace lathe
