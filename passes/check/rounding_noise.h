#pragma once

#include <cstdint>
#include <span>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// What other orders and ways of computing do to the results of ops: each float that is rounded when it is computed
/// is moved at random by up to a few units in the last place; a sum or a product's by units of the sum of its terms'
/// magnitudes, as the order in which it adds moves it even where terms cancel. Values that are copied, chosen or
/// compared stay as they are, and no number below 2^48 is moved onto or over a quarter, where rounding ops and casts
/// to integers jump. For InterpretOptions::computed; the same seed gives the same noise.
class RoundingNoise {
 public:
  /// What the equal elements of a value do. Code mostly rounds them alike, so that errors of rows that repeat add up;
  /// where the ends of rows take other instructions it does not.
  enum class Equals { move_alike, move_apart };

  /// With `rounded` the units are those of the values' own dtypes, else of f64.
  RoundingNoise(std::uint64_t seed, bool rounded, Equals equals = Equals::move_apart)
      : seed_(seed), rounded_(rounded), equals_(equals) {}
  void operator()(const Node& node, std::span<const HostTensor* const> operands, HostTensor& value);

 private:
  double next(double x);  ///< of [-1, 1], for an element x

  std::uint64_t seed_;
  std::uint64_t count_ = 0;  ///< of elements, or of values where equal elements move alike
  bool rounded_;
  Equals equals_;
};

}  // namespace lathe::ir
