#pragma once

#include <llvm/IR/Module.h>

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Adds the functions that a library's header declares to a module for every x86-64 CPU:
///
///   i32 <init>(ptr library, ptr dims, ptr states, i64 seed)
///   i64 <prefix>_workspace_bytes(ptr library, i32 workers)
///   i32 <prefix><entry>_check(ptr library, ptr call)     for each graph
///   i32 <prefix><entry>_run(ptr library, ptr call)       for each graph
///   ptr <prefix>_message(i32 error)
///   ptr <prefix>_describe()
///   ptr <prefix>_file_header(ptr bytes)                  of libraries with states
///
/// They return 0 or the number of an error. `dims` is absent without dims, `states` and `seed` without states.
void emit_interface(llvm::Module& module, const Library& library);

}  // namespace lathe::codegen
