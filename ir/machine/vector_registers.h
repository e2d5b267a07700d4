#pragma once

#include <algorithm>

#include "ir/support/dtype.h"

namespace lathe {

/// The vector registers of a processor, or what one thread of a GPU loads and stores at once.
struct VectorRegisters {
  int bits = 512;
  int count = 32;

  /// Of values that are computed in `dtype`: bf16 and f16 count as f32.
  constexpr int lanes(DType dtype) const { return std::max(1, bits / (dtype == f64 || dtype == i64 ? 64 : 32)); }
  bool operator==(const VectorRegisters&) const = default;
};

}  // namespace lathe
