#pragma once

#include "passes/cpu/cpu_kernels.h"

namespace lathe::cpu {

/// Lowers a linear_recurrence.
KernelContext::Built lower_recurrence(const CpuContext& context, ir::ValueId id);

}  // namespace lathe::cpu
