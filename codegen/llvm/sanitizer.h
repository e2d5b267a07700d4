#pragma once

#include <string_view>
#include <vector>

#include <llvm/IR/Module.h>

#include "codegen/llvm/loader.h"

/// Sanitizer support for compiled kernels in a program built with a sanitizer (-DLATHE_SANITIZE). Kernels are
/// instrumented by LLVM's passes, as used by the host compiler, and call the same runtime. In other programs these
/// functions do nothing.
namespace lathe::codegen {

/// Returns "address", "thread", or "" without a sanitizer that checks memory accesses. Part of cache keys.
std::string_view sanitizer_name();

/// Instruments optimised code. TSan's own pass skips vectors wider than 16 bytes and masked accesses; they are
/// reported lane by lane.
void instrument(llvm::Module& module);

/// Returns the functions that instrumented code may call.
std::vector<LibraryFunction> sanitizer_functions();

}  // namespace lathe::codegen
