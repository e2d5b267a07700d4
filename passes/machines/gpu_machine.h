#pragma once

#include "passes/gpu/gpu_sizes.h"
#include "passes/lowering/machine.h"

namespace lathe {

/// The schedules for an NVIDIA GPU, for blocks and threads (gpu_kernels.h). Kernels are named after their ops and the
/// line of the last one: "k3_rows_softmax_mha_cpp_14". There are no float atomics: every sum has a fixed order that
/// follows from the shapes, so results are the same bits from run to run. On sm_90a warpgroups multiply bf16 and f16
/// by wgmma where that is faster.
Machine gpu_machine(const GpuInfo& gpu, const gpu::GpuSizes& sizes = {});

}  // namespace lathe
