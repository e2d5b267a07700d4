#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/text/tokenizer/encoding.h"

namespace lathe {

/// A training text: its tokens, and a mask of the tokens that the model learns to predict.
struct Example {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> learned;  ///< 1 for each token that contributes to the loss; 0 for the first token

  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
  /// Returns the number of tokens that contribute to the loss.
  std::int64_t predictions() const;
};

/// Statistics of fit().
struct FitReport {
  std::int64_t split = 0;    ///< texts that were split into several examples
  std::int64_t cut = 0;      ///< conversations and completions whose end was cut off
  std::int64_t dropped = 0;  ///< examples without a token to learn
};

/// Returns examples of at most `length` >= 2 tokens. An example in which all tokens are learned is split; adjacent
/// parts share a token, so that each token but the first is predicted once. Other examples are truncated. Examples
/// without a token to learn are dropped.
std::vector<Example> fit(std::vector<Example> examples, std::int64_t length, FitReport& report);

/// Splits a long text into overlapping windows of `length` tokens with the given stride, `stride` <= `length`. In
/// each window, only tokens that no earlier window contains contribute to the loss (sliding-window perplexity).
std::vector<Example> windows(std::span<const TokenId> ids, std::int64_t length, std::int64_t stride);

}  // namespace lathe
