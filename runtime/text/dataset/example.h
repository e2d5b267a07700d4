#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/text/tokenizer/encoding.h"

namespace lathe {

/// A text to learn from: its tokens, and which of them a language model is to learn to predict.
struct Example {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> learned;  ///< 1 for each token that counts in the loss; the first never does

  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
  /// How many tokens count in the loss.
  std::int64_t predictions() const;
};

/// What became of examples that were made to fit a length.
struct FitReport {
  std::int64_t split = 0;    ///< texts that became several examples
  std::int64_t cut = 0;      ///< conversations and completions whose end was cut off
  std::int64_t dropped = 0;  ///< examples without a token to learn
};

/// Makes examples of at most `length` >= 2 tokens. One that is learned as a whole is split; the parts share a token,
/// so that each but the first is predicted once. Any other loses its end. What has nothing left to learn is dropped.
std::vector<Example> fit(std::vector<Example> examples, std::int64_t length, FitReport& report);

/// A long text as overlapping windows of `length` tokens, each `stride` <= length after the one before, in which only
/// the tokens count that no window before has: perplexity with a sliding window.
std::vector<Example> windows(std::span<const TokenId> ids, std::int64_t length, std::int64_t stride);

}  // namespace lathe
