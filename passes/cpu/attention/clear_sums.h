#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe::cpu {

/// An attention stores its sums over outer dims as these dims go by, and nothing where one of them has size 0. For
/// each such sum a kernel that then stores zeros, and else does nothing; none where the sizes are known to be more.
std::vector<KernelContext::Built> clear_sums_over_nothing(const LoweringContext& lowering, const Region& region);

}  // namespace lathe::cpu
