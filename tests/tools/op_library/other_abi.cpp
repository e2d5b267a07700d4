#include <cstdint>

/// An op library of another version of Lathe: only its version may be read.
extern "C" std::uint64_t lathe_op_library_abi() { return 7; }
extern "C" void lathe_op_library(void*) { __builtin_trap(); }
