#pragma once

#include <optional>

#include "codegen/cuda/nvrtc.h"

namespace lathe::test {

/// Returns this machine's NVRTC; prints SKIP and returns nothing if there is none.
std::optional<cuda::Nvrtc> local_nvrtc();

}  // namespace lathe::test
