#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// Splits the domain of a reduction over outer dims: the reduced dims, the kept dims after the last reduced dim (the
/// columns), and the other kept dims.
struct ColumnSpace {
  std::vector<int> outer, reduced, columns;  ///< domain dims

  /// `program` is the elementwise program of the region.
  ColumnSpace(const LoweringContext& lowering, const Region& region, const ElementwiseProgram& program);
};

}  // namespace lathe
