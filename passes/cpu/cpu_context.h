#pragma once

#include "passes/cpu/cpu_sizes.h"
#include "passes/lowering/region_kernels.h"

namespace lathe::cpu {

/// The input of CPU schedules.
struct CpuContext : LoweringContext {
  const CpuInfo& cpu;
  const CpuSizes& tuned;
};

/// Returns whether a tensor is known to exceed the caches, so that it is evicted before it is read.
bool outgrows_caches(const ir::TensorType& type, const CpuInfo& cpu);
/// Returns whether a store should bypass the caches: the result is larger than they are, and the program does not
/// read it. A normal store would first read each cache line, which is a third of a copy's traffic.
bool goes_past_caches(const CpuContext& lowering, const ElementwiseProgram& program, const ElementwiseStore& store);

}  // namespace lathe::cpu
