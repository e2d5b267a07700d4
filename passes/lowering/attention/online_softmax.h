#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/attention/attention_program.h"

namespace lathe {

/// A softmax computed in one loop over the columns, together with the output matmuls (Milakov and Gimelshein 2018,
/// "Online normalizer calculation for softmax"). Uses exp(a - running max), and multiplies the running sums by
/// exp(old max - new max) when the maximum rises.
struct OnlineSoftmax {
  int most;               ///< the reduction that computes max of a
  std::vector<int> sums;  ///< all other reductions; their terms scale with exp(a - most)
  /// The subtracted maximum is clamped to a finite number, so that a row of only -inf gives zeros instead of NaN.
  bool zero_masked = false;
};

/// Matches an attention whose sums along the columns all scale with such exponentials, and that stores no value of
/// rows and columns. Moves divisions by a row value out of the summands, also for bf16 and f16, where weights are
/// then rounded before the division. Returns nullopt, and leaves `attention` unchanged, if there is no match.
std::optional<OnlineSoftmax> find_online_softmax(AttentionProgram& attention);

}  // namespace lathe
