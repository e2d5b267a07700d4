#pragma once

#include <vector>

#include "passes/cpu/cpu_context.h"

namespace lathe::cpu {

/// Returns a kernel for each sum over outer dims of an attention that stores zeros if such a dim has size 0. The
/// attention kernel stores these sums while it iterates over the outer dims, so it stores nothing in that case. There
/// is no kernel for a sum whose dims are known not to be 0.
std::vector<KernelContext::Built> clear_sums_over_nothing(const CpuContext& lowering, const Region& region);

}  // namespace lathe::cpu
