#pragma once

#include <cstdint>

namespace lathe::kernel {

inline constexpr std::int64_t most_stack_bytes = 256 << 10;  ///< of a kernel's stack scratch

}  // namespace lathe::kernel
