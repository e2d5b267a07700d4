#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Returns the symbol of a kernel's functions in a level's module, before "_run" and "_extent".
std::string kernel_symbol(const Library& library, std::size_t level, int kernel);
/// Returns the symbol of the driver of an entry for a level.
std::string driver_symbol(const Library& library, std::size_t level, const LibraryEntry& entry);

/// Bytes of the workspace of an entry's driver: for the launches, and for each worker.
struct WorkspaceSize {
  std::int64_t fixed = 0, per_worker = 0;
};
WorkspaceSize workspace_size(const LibraryProgram& program);

/// Adds the drivers of a level to its module, one function per graph:
///
///   i32 driver(ptr call)    returns an error
///
/// A driver evaluates the sizes of the launches under the dims of the call, writes a record of each launch to the
/// workspace, then runs the launches in order. Arguments are valid: the function that the header declares checks them
/// first. The kernels may be declared or defined in the module.
void emit_drivers(llvm::Module& module, const Library& library, std::size_t level);

}  // namespace lathe::codegen
