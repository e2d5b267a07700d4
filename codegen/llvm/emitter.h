#pragma once

#include <memory>
#include <string>

#include <llvm/IR/Module.h>

#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// LLVM IR for one kernel: `<symbol>_run` (KernelFn) and `<symbol>_extent` (ExtentFn). Throws InternalError for
/// kernels that only a GPU can run (barriers).
std::unique_ptr<llvm::Module> emit_module(llvm::LLVMContext& context, const kernel::Kernel& kernel,
                                          const TargetCpu& target, const std::string& symbol);

}  // namespace lathe::codegen
