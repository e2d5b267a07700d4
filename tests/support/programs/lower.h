#pragma once

#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"

namespace lathe {

/// The program of a graph of primitives for a CPU.
inline Program lower_cpu(const ir::Graph& primitives, const CpuInfo& cpu, const LowerOptions& options = {}) {
  return lower(primitives, cpu_machine(cpu), options);
}

/// The same for GPUs: for the oldest that Lathe compiles for, and for sm_90a.
inline Program lower_gpu(const ir::Graph& primitives, const LowerOptions& options = {}) {
  return lower(primitives, gpu_machine(gpu_info("sm_80")), options);
}
inline Program lower_gpu_sm_90a(const ir::Graph& primitives, const LowerOptions& options = {}) {
  return lower(primitives, gpu_machine(gpu_info("sm_90a")), options);
}

}  // namespace lathe
