#pragma once

#include "passes/compile_pipeline.h"
#include "runtime/target.h"

namespace lathe {

/// What schedules are told of a CPU: see cpu_info_for().
CpuInfo cpu_info(const codegen::TargetCpu& cpu);
/// What schedules are told of a target: an entry of cpu_infos() or gpu_infos(). A GPU whose architecture is not told
/// counts as the oldest that is compiled for.
MachineInfo machine_info(const Target& target);

/// What compiles for a target.
Machine machine_of(const Target& target);

/// What becomes of a program's kernels: "llvm" (LLVM IR as it goes to code generation) and "asm" for a CPU, "cuda"
/// (CUDA C++) for a GPU. The last of them ends in what runs.
std::vector<Stage> code_stages(const Target& target);

}  // namespace lathe
