#pragma once

#include <memory>

#include "passes/gpu/gpu_sizes.h"
#include "runtime/backend/backend.h"

namespace lathe::cuda {

struct Platform;  // runtime/cuda/platform.h

/// NVIDIA GPUs: CUDA C++, compiled by NVRTC. Target names are "cuda", or "cuda:" and an architecture. Without
/// `platform` a device is opened by this machine's own driver and NVRTC, with ranks by platform_of_rank(). Schedules
/// use `sizes`.
std::shared_ptr<const Backend> cuda_backend(std::shared_ptr<const Platform> platform = nullptr,
                                            const gpu::GpuSizes& sizes = {});

}  // namespace lathe::cuda
