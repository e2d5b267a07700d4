#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

/// How the next token is chosen from logits.
namespace lathe {

/// Steps in the order of the library transformers: repetition penalty, temperature, top-k, top-p, min-p, typical-p.
struct Sampling {
  /// Logits of tokens that were seen are divided by it where positive, else multiplied (Keskar et al. 2019); 1: none.
  double repetition_penalty = 1;
  double temperature = 1;  ///< divides the logits; 0 is greedy
  std::int64_t top_k = 0;  ///< only the k most likely tokens (Fan et al. 2018); 0: all
  double top_p = 1;        ///< the fewest most likely tokens whose probabilities reach p (Holtzman et al. 2020)
  double min_p = 0;        ///< only tokens at least this share as likely as the likeliest (Nguyen et al. 2024)
  /// The tokens whose information is closest to the entropy, until their probabilities reach this (Meister et al.
  /// 2022); 1: all
  double typical_p = 1;
  bool greedy() const { return temperature == 0; }
};

/// Throws UserError [decoding_options] for numbers out of their ranges.
void check(const Sampling& sampling);

/// The logits [.., classes] of one row, rows counted in row-major order. Throws UserError [decoding_row].
std::vector<double> logits_row(const HostTensor& logits, std::int64_t row);

/// The most likely token; the first of equals. Throws UserError [decoding_logits] for no logits or NaN.
std::int64_t greedy(std::span<const double> logits);

/// Divides or multiplies the logits of tokens `seen`, each once. Throws UserError [decoding_options] for a penalty
/// that is not positive.
void penalize_repetition(std::span<double> logits, std::span<const std::int64_t> seen, double penalty);

/// A token that may be drawn, and how likely.
struct Candidate {
  std::int64_t token;
  double probability;
};

/// The tokens that `sampling` draws from: all in their order, or where some are left out the likeliest first, of
/// equal logits the first. Probabilities add up to 1. The repetition penalty is penalize_repetition()'s. Throws
/// UserError [decoding_options], [decoding_logits].
std::vector<Candidate> candidates(std::span<const double> logits, const Sampling& sampling);

/// The same by token: 0 for those that cannot be drawn.
std::vector<double> probabilities(std::span<const double> logits, const Sampling& sampling);

/// Draws tokens. The n-th draw depends on (seed, n) alone.
class Sampler {
 public:
  /// Throws UserError [decoding_options], so that what cannot be drawn is known before anything is computed.
  Sampler(const Sampling& sampling, std::uint64_t seed, std::uint64_t draws = 0);
  /// `seen`: tokens that a repetition penalty is for.
  std::int64_t next(std::span<const double> logits, std::span<const std::int64_t> seen = {});
  /// How many were drawn: with the seed, all there is to resume from.
  std::uint64_t draws() const { return draws_; }

 private:
  Sampling sampling_;
  std::uint64_t seed_, draws_;
};

}  // namespace lathe
