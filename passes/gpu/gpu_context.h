#pragma once

#include "passes/gpu/gpu_sizes.h"
#include "passes/lowering/region_kernels.h"

namespace lathe::gpu {

inline constexpr int block_threads = 256;  ///< threads of a block, if a schedule does not choose another number
/// Multiprocessors that estimates assume. The same for all GPUs, because the estimates determine how sums are split,
/// and thus their bits.
inline constexpr int estimated_multiprocessors = 128;

inline constexpr std::int64_t late_size = 16384;  ///< assumed value of a size that is bound late, in matmuls by fma

/// The input of GPU schedules.
struct GpuContext : LoweringContext {
  const GpuInfo& gpu;
  const GpuSizes& tuned;
};

}  // namespace lathe::gpu
