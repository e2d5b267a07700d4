#pragma once

namespace lathe::codegen {

/// LLVM does not tell its caller that memory is exhausted: it aborts the process, or is left broken by a bad_alloc,
/// since its code has no clean-up for exceptions. From here on whatever in the process finds no memory, by operator
/// new too, calls `handler`, which must not return and can allocate nothing. For programs; a library leaves it to the
/// program that it is part of.
void set_out_of_memory_handler(void (*handler)());

}  // namespace lathe::codegen
