#pragma once

#include "frontend/tensor.h"

namespace lathe::detail {

/// The dynamic map of bitsandbytes (Dettmers 2015, 8-bit approximations for parallelism in deep learning): 256 values
/// in
/// [-1, 1], or in [0, 1] without signs. A decade [10^(b-7), 10^(b-6)], b = 0 .. 6, is divided into cells of equal
/// width, twice as many as the decade below, and a value is the middle of its cell; 0 and 1 are values as well.
struct DynamicMap {
  bool has_sign;

  /// Returns the codes of the nearest values, i8 with signs and u8 without; x is in the range of the map.
  Tensor encode(const Tensor& x) const;
  /// Returns the values of codes in a float dtype.
  Tensor decode(const Tensor& codes, DType dtype) const;
};

}  // namespace lathe::detail
