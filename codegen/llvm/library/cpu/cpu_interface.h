#pragma once

#include <llvm/IR/Module.h>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Adds the functions that the header of a library for CPUs declares (interface_emitter.h) to a module for every
/// x86-64 CPU, and for each graph
///
///   i32 <prefix><entry>_run(ptr library, ptr call)
void emit_cpu_interface(llvm::Module& module, const Library& library);

}  // namespace lathe::codegen
