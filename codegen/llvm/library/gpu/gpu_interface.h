#pragma once

#include <llvm/IR/Module.h>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Adds the functions that the header of a library for GPUs declares (interface_emitter.h) to a module for every
/// x86-64 CPU. Arguments of init after the library: the driver's functions, and device memory for constants if there
/// are any. Other functions:
///
///   i32 <prefix><entry>_enqueue(ptr library, ptr call)    for each graph
///   i32 <prefix><entry>_wait(ptr library, ptr call)       for each graph
///   i32 <prefix><entry>_run(ptr library, ptr call)        for each graph: both
///   i32 <prefix>_copy_states(ptr library, ptr dims, ptr to, ptr from, ptr stream)    of libraries with states
///   i32 <prefix>_release(ptr library)
void emit_gpu_interface(llvm::Module& module, const Library& library);

}  // namespace lathe::codegen
