#pragma once

#include <memory>

#include "runtime/backend/backend.h"

namespace lathe::cuda {

struct Platform;  // runtime/cuda/platform.h

/// NVIDIA GPUs: CUDA C++, compiled by NVRTC. Target names are "cuda", or "cuda:" and an architecture. Without
/// `platform` a device is opened by this machine's own driver and NVRTC, with ranks by platform_of_rank().
std::shared_ptr<const Backend> cuda_backend(std::shared_ptr<const Platform> platform = nullptr);

}  // namespace lathe::cuda
