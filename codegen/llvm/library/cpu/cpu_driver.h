#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "codegen/llvm/library/library_code.h"
#include "codegen/llvm/library/workspace_layout.h"

namespace lathe::codegen {

/// Returns the symbol of a kernel's functions in a level's module, before "_run" and "_extent".
std::string kernel_symbol(const Library& library, std::size_t level, int kernel);

/// Returns the bytes of workspace of a program on a CPU.
WorkspaceSize cpu_workspace_size(const LibraryProgram& program);

/// Adds the drivers of a CPU level to its module, one function per graph:
///
///   i32 driver(ptr call)    returns an error
///
/// A driver writes a record of each launch to the workspace, then runs the launches on the workers of the call. The
/// kernels may be declared or defined in the module.
void emit_cpu_drivers(llvm::Module& module, const Library& library, std::size_t level);

}  // namespace lathe::codegen
