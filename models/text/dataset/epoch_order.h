#pragma once

#include <cstdint>
#include <vector>

namespace lathe {

/// Returns 0 .. n-1 in an order that depends only on seed and stream (Fisher-Yates shuffle).
std::vector<std::uint32_t> shuffled(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

/// The order in which training uses n examples: passes over all of them follow each other, and each has its own
/// order. It depends only on n and the seed.
class EpochOrder {
 public:
  /// `n` is from 1 to 2^32 - 1.
  EpochOrder(std::int64_t n, std::uint64_t seed) : n_(n), seed_(seed) {}
  /// Returns the number of the example at this position, counted across passes.
  std::uint32_t at(std::int64_t position) const;

 private:
  std::int64_t n_;
  std::uint64_t seed_;
  mutable std::int64_t epoch_ = -1;           ///< epoch of order_
  mutable std::vector<std::uint32_t> order_;  ///< of the examples in that epoch
};

}  // namespace lathe
