#pragma once

#include <string>
#include <string_view>

namespace lathe::cuda {

/// The file name under which kernels include the text of prelude().
inline constexpr const char* prelude_name = "lathe.cuh";

/// Returns the header of emitted kernels: element types, vectors, and every operation of the kernel IR with the exact
/// semantics of docs/kernel-ir.md. It is CUDA C++ that needs no other header. Compile with -fmad=false to prevent
/// contraction.
std::string prelude();

namespace detail {
std::string_view prelude_types();
std::string_view prelude_arithmetic();
std::string_view prelude_math();
std::string_view prelude_f64_math();
std::string_view prelude_casts();
std::string prelude_vectors();
std::string_view prelude_memory();
}  // namespace detail

}  // namespace lathe::cuda
