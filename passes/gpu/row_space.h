#pragma once

#include <cstdint>
#include <vector>

#include "passes/lowering/point_emitter.h"

namespace lathe::gpu {

/// How the domain of a point program splits into rows, and how many lanes a thread takes of one.
struct RowSpace {
  std::vector<int> outer, inner;  ///< domain dims
  std::uint64_t inner_bits = 0;
  int lanes = 1;

  /// Reductions fix the inner dims. Without any (`inner` is 0), as many trailing dims are inner as every access
  /// merges into one stride.
  RowSpace(const PointProgram& program, int inner);
};

}  // namespace lathe::gpu
