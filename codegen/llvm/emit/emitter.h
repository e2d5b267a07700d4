#pragma once

#include <string>

#include <llvm/IR/Module.h>

#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// Adds LLVM IR for one kernel to the module, which must have its data layout set: `<symbol>_run` (KernelFn) and
/// `<symbol>_extent` (ExtentFn). Throws InternalError for kernels that only a GPU can run (barriers).
void emit_kernel(llvm::Module& module, const kernel::Kernel& kernel, const TargetCpu& target,
                 const std::string& symbol);

}  // namespace lathe::codegen
