#pragma once

namespace lathe::codegen {

/// Sets the handler for exhausted memory in the whole process, including operator new. The handler must not return
/// and cannot allocate. Needed because LLVM does not report exhausted memory: it aborts, or is left in a broken state
/// by bad_alloc, since its code does not clean up after exceptions. For programs; a library leaves this to its
/// program.
void set_out_of_memory_handler(void (*handler)());

}  // namespace lathe::codegen
