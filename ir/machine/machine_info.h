#pragma once

#include <variant>

#include "ir/machine/cpu_info.h"
#include "ir/machine/gpu_info.h"

namespace lathe {

/// The hardware that kernels are compiled for.
using MachineInfo = std::variant<CpuInfo, GpuInfo>;

}  // namespace lathe
