#pragma once

#include <cstdint>
#include <span>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Noise on the results of ops, like that of other orders and ways of computing. Each float that is rounded when it
/// is computed is moved at random by up to a few units in the last place. A sum or a matmul is moved by units of the
/// sum of its terms' magnitudes, because the order of additions moves it even if terms cancel. Values that are
/// copied, selected or compared are unchanged. No number below 2^48 is moved onto or over a quarter, where rounding
/// ops and casts to integers jump. For InterpretOptions::computed; the same seed gives the same noise.
class RoundingNoise {
 public:
  /// Whether equal elements of a value move alike. Code usually rounds them alike, so that errors of repeated rows
  /// add up. It does not if the ends of rows use other instructions.
  enum class Equals { move_alike, move_apart };

  /// With `rounded`, the units are those of the values' own dtypes, otherwise of f64.
  RoundingNoise(std::uint64_t seed, bool rounded, Equals equals = Equals::move_apart)
      : seed_(seed), rounded_(rounded), equals_(equals) {}
  void operator()(const Node& node, std::span<const HostTensor* const> operands, HostTensor& value);

 private:
  double next(double x);  ///< in [-1, 1), for an element x

  std::uint64_t seed_;
  std::uint64_t count_ = 0;  ///< number of elements, or of values if equal elements move alike
  bool rounded_;
  Equals equals_;
};

}  // namespace lathe::ir
