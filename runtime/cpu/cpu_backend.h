#pragma once

#include <memory>

#include "ir/hardware/cpu_info.h"
#include "runtime/backend/backend.h"

namespace lathe {

namespace codegen {
struct TargetCpu;  // codegen/llvm/target_cpu.h
}

/// Returns the CPU backend: LLVM code on a thread pool. Target names are those of codegen::TargetCpu::named().
std::shared_ptr<const Backend> cpu_backend();

/// Returns the CPU facts that schedules use; see cpu_info_for().
CpuInfo cpu_info(const codegen::TargetCpu& cpu);

}  // namespace lathe
