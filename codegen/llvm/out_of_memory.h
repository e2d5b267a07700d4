#pragma once

namespace lathe {

/// LLVM does not tell its caller that memory is exhausted: it prints a line and aborts the process. From here on it
/// calls `handler` instead, which must not return and can allocate nothing. For programs; a library leaves it to the
/// program that it is part of.
void set_llvm_out_of_memory_handler(void (*handler)());

}  // namespace lathe
