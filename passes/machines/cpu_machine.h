#pragma once

#include "passes/lowering/machine.h"

namespace lathe {

/// The schedules for a CPU: parallel loops are shared by threads, inner loops are vectors.
Machine cpu_machine(const CpuInfo& cpu);

}  // namespace lathe
