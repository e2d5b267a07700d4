#pragma once

#include "passes/lowering/lower.h"

namespace lathe {

/// lower() for CPUs: one kernel for each region, its parallel loops shared by threads, its inner ones in vectors.
Program lower_cpu(const ir::Graph& graph, const CpuInfo& cpu, const LowerOptions& options = {});

Machine cpu_machine(const CpuInfo& cpu);

}  // namespace lathe
