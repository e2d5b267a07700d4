#pragma once

#include "passes/cpu/cpu_sizes.h"
#include "passes/lowering/machine.h"

namespace lathe {

/// The schedules for a CPU: parallel loops are shared by threads, inner loops are vectors.
Machine cpu_machine(const CpuInfo& cpu);
/// Same with other sizes than those of passes/cpu/cpu_sizes.h, for measurements and tests.
Machine cpu_machine(const CpuInfo& cpu, const cpu::CpuSizes& sizes);

}  // namespace lathe
