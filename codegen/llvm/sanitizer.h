#pragma once

#include <string_view>
#include <vector>

#include <llvm/IR/Module.h>

#include "codegen/llvm/loader.h"

/// Compiled kernels in a program that is itself built with a sanitizer (-DLATHE_SANITIZE): they are instrumented by
/// the passes of LLVM that the host compiler uses, and call the same runtime. In other programs nothing happens here.
namespace lathe::codegen {

/// "address", "thread", or "" where the program has no sanitizer that looks at loads and stores. Part of cache keys.
std::string_view sanitizer_name();

/// Adds the checks to optimised code. TSan's own pass skips vectors wider than 16 bytes and masked accesses; they are
/// reported to it lane by lane.
void instrument(llvm::Module& module);

/// What instrumented code may call.
std::vector<LibraryFunction> sanitizer_functions();

}  // namespace lathe::codegen
