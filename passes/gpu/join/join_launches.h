#pragma once

#include "ir/hardware/gpu_info.h"
#include "passes/program/program.h"

namespace lathe::gpu {

/// Joins runs of launches whose kernels take about as long as their launch into phases of one kernel
/// (Program::joined), as in a step that decodes a token: `is_joined` has the rule. A grid barrier separates phases of
/// which one accesses what the other writes. Adds the kernels of phases to the program.
void join_launches(Program& program, const GpuInfo& gpu);

}  // namespace lathe::gpu
