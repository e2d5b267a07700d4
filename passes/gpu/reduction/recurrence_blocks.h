#pragma once

#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

/// Lowers a linear_recurrence.
KernelContext::Built lower_recurrence(const GpuContext& context, ir::ValueId id);

}  // namespace lathe::gpu
