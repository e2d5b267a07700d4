#pragma once

#include "passes/lowering/machine.h"
#include "runtime/target.h"

namespace lathe {

/// What schedules are told of a CPU: see cpu_info_for().
CpuInfo cpu_info(const codegen::TargetCpu& cpu);
/// What schedules are told of a target: an entry of cpu_infos() or gpu_infos(). A GPU whose architecture is not told
/// counts as the oldest that is compiled for.
MachineInfo machine_info(const Target& target);

/// The machine that a target compiles for, with its code stages: "llvm" (LLVM IR as it is given to code generation)
/// and "asm" for a CPU, "cuda" (CUDA C++) for a GPU.
Machine machine_of(const Target& target);

}  // namespace lathe
