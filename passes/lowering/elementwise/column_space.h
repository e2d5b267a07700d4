#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// How the domain of a reduction over outer dims splits: the dims that it folds, those kept behind the last of these,
/// which are its columns, and the other kept ones.
struct ColumnSpace {
  std::vector<int> outer, reduced, columns;  ///< domain dims

  /// `program`: of the region.
  ColumnSpace(const LoweringContext& lowering, const Region& region, const ElementwiseProgram& program);
};

}  // namespace lathe
