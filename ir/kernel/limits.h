#pragma once

#include <cstdint>

namespace lathe::kernel {

inline constexpr std::int64_t most_stack_bytes = 256 << 10;  ///< stack scratch per kernel

}  // namespace lathe::kernel
