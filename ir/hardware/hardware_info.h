#pragma once

#include <variant>

#include "ir/hardware/cpu_info.h"
#include "ir/hardware/gpu_info.h"

namespace lathe {

/// The hardware that kernels are compiled for.
using HardwareInfo = std::variant<CpuInfo, GpuInfo>;

}  // namespace lathe
