#pragma once

#include <algorithm>

#include "ir/support/dtype.h"

namespace lathe {

/// The vector registers of a CPU, or the load and store width of a GPU thread.
struct VectorRegisters {
  int bits = 512;
  int count = 32;

  /// Returns the lanes of values computed in `dtype`; bf16 and f16 are computed as f32.
  constexpr int lanes(DType dtype) const { return std::max(1, bits / (dtype == f64 || dtype == i64 ? 64 : 32)); }
  bool operator==(const VectorRegisters&) const = default;
};

}  // namespace lathe
