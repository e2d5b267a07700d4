#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Returns the symbol of the function that loads the kernels of a level.
std::string loader_symbol(const Library& library, std::size_t level);

/// Adds the compiled kernels of a level to its module, and a function that returns an error:
///
///   i32 loader(ptr library)    stores the handles of all kernels, or unloads what it has loaded
void emit_loader(llvm::Module& module, const Library& library, std::size_t level);

}  // namespace lathe::codegen
