#include "frontend/decode/token_rules.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/decode/beam_search.h"
#include "ir/support/error.h"
#include "tests/support/texts/error_label.h"

using namespace lathe;
using test::error_label;
using Tokens = std::vector<std::int64_t>;

namespace {

/// Returns which of eight tokens the rules allow.
Tokens possible(const TokenRules& rules, const Tokens& tokens, std::int64_t prompt, std::int64_t longest = 100,
                const Tokens& ends = {}) {
  std::vector<double> logits(8, 0.5);
  apply(rules, {.tokens = tokens, .prompt = prompt, .longest = longest, .end_tokens = ends}, logits);
  Tokens left;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (!std::isinf(logits[i])) left.push_back(static_cast<std::int64_t>(i));
  return left;
}

}  // namespace

TEST_CASE("token rules: n-grams do not repeat, the prompt included") {
  CHECK(possible({.no_repeat_ngram_size = 1}, {0, 3, 5}, 2) == Tokens{1, 2, 4, 6, 7});
  // 1 2 and 1 3 have occurred.
  CHECK(possible({.no_repeat_ngram_size = 2}, {1, 2, 1, 3, 1}, 3) == Tokens{0, 1, 4, 5, 6, 7});
  CHECK(possible({.no_repeat_ngram_size = 3}, {1, 2, 3, 1, 2}, 3) == Tokens{0, 1, 2, 4, 5, 6, 7});
  CHECK(possible({.no_repeat_ngram_size = 4}, {1, 2, 3}, 3).size() == 8);
}

TEST_CASE("token rules: bad words are not completed, except a single end token") {
  const TokenRules rules{.bad_words = {{4}, {1, 2}, {6}, {5, 6, 7, 0, 3}}};
  CHECK(possible(rules, {0, 1}, 1) == Tokens{0, 1, 3, 5, 7});
  CHECK(possible(rules, {0, 3}, 1, 100, {6}) == Tokens{0, 1, 2, 3, 5, 6, 7});
  CHECK(possible(rules, {5, 6, 7, 0}, 1) == Tokens{0, 1, 2, 5, 7});
}

TEST_CASE("token rules: end tokens are suppressed until the minimum length") {
  const Tokens ends{2, 7}, others{0, 1, 3, 4, 5, 6};
  CHECK(possible({.min_length = 4}, {0, 1, 1}, 2, 100, ends) == others);
  CHECK(possible({.min_length = 4}, {0, 1, 1, 1}, 2, 100, ends).size() == 8);
  CHECK(possible({.min_new_tokens = 2}, {0, 1, 1}, 2, 100, ends) == others);
  CHECK(possible({.min_new_tokens = 2}, {0, 1, 1, 1}, 2, 100, ends).size() == 8);
}

TEST_CASE("token rules: tokens are forced after a lone start token and at the end") {
  CHECK(possible({.forced_bos_token = 5}, {0}, 1) == Tokens{5});
  CHECK(possible({.forced_bos_token = 5}, {0, 1}, 1).size() == 8);
  CHECK(possible({.forced_eos_tokens = {2, 3}}, {0, 1, 4}, 1, 4) == Tokens{2, 3});
  CHECK(possible({.forced_eos_tokens = {2, 3}}, {0, 1}, 1, 4).size() == 8);
}

TEST_CASE("token rules: suppressed tokens, anywhere or at the start only") {
  CHECK(possible({.suppress_tokens = {1, 99, -1}}, {0, 3, 3}, 1) == Tokens{0, 2, 3, 4, 5, 6, 7});
  CHECK(possible({.begin_suppress_tokens = {1}}, {0, 3}, 2) == Tokens{0, 2, 3, 4, 5, 6, 7});
  CHECK(possible({.begin_suppress_tokens = {1}}, {0, 3}, 1).size() == 8);
  // The first chosen token is the one after the forced token.
  const TokenRules forced{.forced_bos_token = 5, .begin_suppress_tokens = {1}};
  CHECK(possible(forced, {0}, 1) == Tokens{5});
  CHECK(possible(forced, {0, 5}, 1) == Tokens{0, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("rejects invalid token rules") {
  CHECK_NOTHROW(check(TokenRules{}, 8));
  for (const TokenRules& rules :
       {TokenRules{.no_repeat_ngram_size = -1}, TokenRules{.min_length = -1}, TokenRules{.min_new_tokens = -2},
        TokenRules{.bad_words = {{}}}, TokenRules{.bad_words = {{8}}}, TokenRules{.forced_bos_token = 8},
        TokenRules{.forced_eos_tokens = {-1}}, TokenRules{.forced_eos_tokens = {1, 2}, .suppress_tokens = {2, 1}}})
    CHECK(error_label([&] { check(rules, 8); }) == "decoding_options");
  CHECK_NOTHROW(check(TokenRules{.forced_eos_tokens = {1, 2}, .suppress_tokens = {2}}, 8));
}

TEST_CASE("beam search: rules adjust log-probabilities, and a sequence may end by itself") {
  // Token 0 is the most likely, then 1, then 2, for any sequence.
  const auto next = [](auto sequences, auto) {
    return std::vector(sequences.size(), std::vector<double>{std::log(0.6), std::log(0.3), std::log(0.1)});
  };
  BeamOptions options{.width = 2, .longest = 3};
  CHECK(beam_search({9}, options, next).front().tokens == Tokens{9, 0, 0, 0});
  const TokenRules rules{.suppress_tokens = {0}};
  options.adjust = [&](auto tokens, std::span<double> logs) { apply(rules, {.tokens = tokens}, logs); };
  const Beam suppressed = beam_search({9}, options, next).front();
  CHECK(suppressed.tokens == Tokens{9, 1, 1, 1});
  CHECK(suppressed.score == Approx(std::log(0.3)));  // not normalized again
  options.ends = [](auto tokens) { return tokens.size() == 3; };
  CHECK(beam_search({9}, options, next).front().tokens == Tokens{9, 1, 1});
  options.adjust = [](auto, std::span<double> logs) { std::fill(logs.begin(), logs.end(), -INFINITY); };
  CHECK(error_label([&] { (void)beam_search({9}, options, next); }) == "decoding_logits");
}
