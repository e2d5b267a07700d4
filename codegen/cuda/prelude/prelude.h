#pragma once

#include <string>
#include <string_view>

namespace lathe::cuda {

/// The name under which kernels include the text of prelude().
inline constexpr const char* prelude_name = "lathe.cuh";

/// What printed kernels are written in, as CUDA C++ that needs no other header: the element types, vectors of them,
/// and every operation of the kernel IR with exactly the meaning that docs/kernel-ir.md gives it. It is compiled with
/// -fmad=false, so that nothing is contracted.
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
