#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/support/host_tensor.h"

/// How the next token is chosen from logits.
namespace lathe {

struct Sampling {
  double temperature = 1;  ///< divides the logits; 0 is greedy
  std::int64_t top_k = 0;  ///< only the k most likely tokens (Fan et al. 2018); 0: all
  double top_p = 1;        ///< the fewest most likely tokens whose probabilities reach p (Holtzman et al. 2020)
  bool greedy() const { return temperature == 0; }
};

/// The logits [.., classes] of one row, rows counted in row-major order. Throws UserError [decoding_row].
std::vector<double> logits_row(const HostTensor& logits, std::int64_t row);

/// The most likely token; the first of equals. Throws UserError [decoding_logits] for no logits or NaN.
std::int64_t greedy(std::span<const double> logits);

/// The distribution that `sampling` draws from: temperature first, then top-k, then top-p, then normalised. Of equal
/// logits the first counts as the likelier. Throws UserError [decoding_options], [decoding_logits].
std::vector<double> probabilities(std::span<const double> logits, const Sampling& sampling);

/// Draws tokens. The n-th draw depends on (seed, n) alone.
class Sampler {
 public:
  Sampler(const Sampling& sampling, std::uint64_t seed, std::uint64_t draws = 0)
      : sampling_(sampling), seed_(seed), draws_(draws) {}
  std::int64_t next(std::span<const double> logits);
  /// How many were drawn: with the seed, all there is to resume from.
  std::uint64_t draws() const { return draws_; }

 private:
  Sampling sampling_;
  std::uint64_t seed_, draws_;
};

}  // namespace lathe
