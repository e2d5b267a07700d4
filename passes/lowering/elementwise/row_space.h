#pragma once

#include <cstdint>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// Whether every access of a program steps through these dims, from the outside in, by one stride.
bool merges(const ElementwiseProgram& program, const std::vector<int>& dims);

/// How the domain of an elementwise program splits into rows, and how many lanes of one are taken at once.
struct RowSpace {
  std::vector<int> outer, inner;  ///< domain dims
  std::uint64_t inner_bits = 0;
  int lanes = 1;

  /// Reductions fix the inner dims. Without any (`inner` is 0), as many trailing dims are inner as every access
  /// merges into one stride: all of them for plain element-wise code.
  RowSpace(const ElementwiseProgram& program, int inner, const VectorRegisters& vectors);
};

}  // namespace lathe
