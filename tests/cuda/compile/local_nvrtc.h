#pragma once

#include <optional>

#include "codegen/cuda/nvrtc.h"

namespace lathe::test {

/// This machine's NVRTC; where there is none, nothing, said as SKIP on standard output.
std::optional<cuda::Nvrtc> local_nvrtc();

}  // namespace lathe::test
