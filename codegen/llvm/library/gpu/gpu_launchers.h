#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Returns the symbol of the function that launches a kernel.
std::string launcher_symbol(const Library& library, std::size_t level, int kernel);

/// Adds a function for each kernel of a level:
///
///   i32 launcher(ptr library, ptr stream, ptr values)    returns an error
///
/// `values` are the arguments of the kernel, 8 bytes each: buffers, dims, and the address of a status word. The
/// function evaluates the number of blocks and the tensor maps under the dims, and puts the launch on the stream.
void emit_launchers(llvm::Module& module, const Library& library, std::size_t level);

}  // namespace lathe::codegen
