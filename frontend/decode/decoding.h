#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

/// Choosing the next token from logits.
namespace lathe {

/// The steps run in the order that transformers uses: repetition penalty, temperature, top-k, top-p, min-p,
/// typical-p.
struct Sampling {
  /// Divides positive logits of seen tokens by it and multiplies the others (Keskar et al. 2019); 1: off.
  double repetition_penalty = 1;
  double temperature = 1;  ///< divides the logits; 0 is greedy
  std::int64_t top_k = 0;  ///< keeps the k most likely tokens (Fan et al. 2018); 0: all
  double top_p = 1;        ///< keeps the fewest most likely tokens whose probabilities reach p (Holtzman et al. 2020)
  double min_p = 0;        ///< keeps tokens with at least this share of the highest probability (Nguyen et al. 2024)
  /// Keeps the tokens whose information is closest to the entropy, until their probabilities reach this (Meister et
  /// al. 2022); 1: all.
  double typical_p = 1;
  bool greedy() const { return temperature == 0; }
};

/// Throws UserError [decoding_options] for values out of range.
void check(const Sampling& sampling);

/// Returns one row of logits [.., classes]; rows are numbered in row-major order. Throws UserError [decoding_row].
std::vector<double> logits_row(const HostTensor& logits, std::int64_t row);

/// Returns the most likely token, the first one on a tie. Throws UserError [decoding_logits] for NaN or empty logits.
std::int64_t greedy(std::span<const double> logits);

/// Applies the repetition penalty once to each token in `seen`. Throws UserError [decoding_options] unless the
/// penalty is positive.
void penalize_repetition(std::span<double> logits, std::span<const std::int64_t> seen, double penalty);

/// A token that may be drawn, with its probability.
struct Candidate {
  std::int64_t token;
  double probability;
};

/// Returns the tokens that `sampling` draws from. If all are kept, they are in order of their id, otherwise in
/// descending order of probability with ties by id. Probabilities sum to 1. The repetition penalty is not applied:
/// use penalize_repetition(). Throws UserError [decoding_options], [decoding_logits].
std::vector<Candidate> candidates(std::span<const double> logits, const Sampling& sampling);

/// Returns the same probabilities indexed by token; 0 for tokens that cannot be drawn.
std::vector<double> probabilities(std::span<const double> logits, const Sampling& sampling);

/// Draws tokens. The n-th draw depends only on (seed, n).
class Sampler {
 public:
  /// Throws UserError [decoding_options] here, before anything is computed.
  Sampler(const Sampling& sampling, std::uint64_t seed, std::uint64_t draws = 0);
  /// `seen`: the tokens that the repetition penalty applies to.
  std::int64_t next(std::span<const double> logits, std::span<const std::int64_t> seen = {});
  /// Number of draws so far. Together with the seed, this is the whole state to resume from.
  std::uint64_t draws() const { return draws_; }

 private:
  Sampling sampling_;
  std::uint64_t seed_, draws_;
};

}  // namespace lathe
