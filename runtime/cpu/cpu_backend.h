#pragma once

#include <memory>

#include "ir/hardware/cpu_info.h"
#include "runtime/backend.h"

namespace lathe {

namespace codegen {
struct TargetCpu;  // codegen/llvm/target_cpu.h
}

/// CPUs: LLVM code, run on a pool of threads. Target names are those of codegen::TargetCpu::named().
std::shared_ptr<const Backend> cpu_backend();

/// The facts that schedules use of a CPU: see cpu_info_for().
CpuInfo cpu_info(const codegen::TargetCpu& cpu);

}  // namespace lathe
