#pragma once

#include <cstdint>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// Returns whether every access of a program advances through these dims, outermost first, by one fixed stride.
bool merges(const ElementwiseProgram& program, const std::vector<int>& dims);

/// Splits the domain of an elementwise program into rows, and chooses the number of vector lanes.
struct RowSpace {
  std::vector<int> outer, inner;  ///< domain dims
  std::uint64_t inner_bits = 0;
  int lanes = 1;

  /// With reductions, `inner` is the number of inner dims. Without (`inner` is 0), the inner dims are the longest
  /// sequence of trailing dims that every access merges into one stride: all dims in plain elementwise code.
  RowSpace(const ElementwiseProgram& program, int inner, const VectorRegisters& vectors);
};

}  // namespace lathe
