#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "codegen/llvm/library/library_code.h"
#include "codegen/llvm/library/workspace_layout.h"

namespace lathe::codegen {

/// Returns the symbol of the function that waits for a driver's work.
std::string waiter_symbol(const Library& library, std::size_t level, const LibraryEntry& entry);

/// Returns the bytes of workspace of a program on a GPU.
WorkspaceSize gpu_workspace_size(const LibraryProgram& program);

/// Adds the launchers of a level's kernels to its module (gpu_launchers.h), and two functions per graph, which return
/// an error:
///
///   i32 driver(ptr library, ptr call)    puts all launches on the stream of the call
///   i32 waiter(ptr library, ptr call)    waits for them, and reads the results of run-time checks
void emit_gpu_drivers(llvm::Module& module, const Library& library, std::size_t level);

}  // namespace lathe::codegen
