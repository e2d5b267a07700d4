#pragma once

#include <optional>
#include <vector>

#include "passes/cpu/cpu_context.h"

namespace lathe::cpu {

/// The domain of an elementwise program that reads some values transposed, split into tiles of `rows` by `lanes`
/// points. y[i, j] = x[j, i] writes consecutive elements along j, with a stride in x, and reads consecutive elements
/// along i.
struct TransposedSpace {
  std::vector<int> rest, across, along;  ///< domain dims; results are contiguous along `along`
  std::vector<int> loads;                ///< contiguous along `across`, and not along `along`
  int rows = 1, lanes = 1;               ///< points per tile: `across` and `along`
  int row_block = 1, lane_block = 1;     ///< points per task: multiples of `rows` and `lanes`
};

/// Returns the space of a program without reductions; nothing if no load is transposed, or a side of the tile is one
/// point.
std::optional<TransposedSpace> transposed_space(const ElementwiseProgram& program, const VectorRegisters& vectors);

}  // namespace lathe::cpu
