#pragma once

#include <cstdint>

namespace lathe {

/// Units of memory transfer and protection, the same on every supported processor. Buffers are aligned to a cache
/// line.
inline constexpr std::int64_t cache_line_bytes = 64, page_bytes = 4096, huge_page_bytes = 2 << 20;

}  // namespace lathe
