#pragma once

#include <llvm/IR/Module.h>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Adds i32 <prefix>_choose_level(): the last level that the CPU and the system support, or -1. Requests tile
/// registers from the system if that level needs them.
llvm::Function* emit_cpu_choice(llvm::Module& module, const Library& library);

}  // namespace lathe::codegen
