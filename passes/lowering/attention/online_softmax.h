#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/attention/attention_program.h"

namespace lathe {

/// A softmax that one loop over the columns computes, together with the products of its weights (Milakov and
/// Gimelshein 2018, "Online normalizer calculation for softmax"): exp(a - max of a) of the columns so far, whose sums
/// are multiplied by exp(old max - new max) when the maximum rises.
struct OnlineSoftmax {
  int most;               ///< the reduction: the largest a
  std::vector<int> sums;  ///< all other reductions: sums of what scales with exp(a - most)
  /// What is subtracted of a is never -inf, so that a row of nothing but -inf gives zeros and not NaN.
  bool zero_masked = false;
};

/// Finds it where all that an attention sums along the columns scales with such exponentials, and nothing over rows
/// and columns is stored. Divisions by a value of the row are taken out of what products sum: in bf16 and f16 too,
/// where weights are then rounded before they are divided. Else the attention stays as it is.
std::optional<OnlineSoftmax> find_online_softmax(AttentionProgram& attention);

}  // namespace lathe
