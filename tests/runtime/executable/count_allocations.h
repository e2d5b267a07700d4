#pragma once

#include <cstdint>

namespace lathe::test {

/// Returns the number of calls of operator new so far, on all threads; always 0 with AddressSanitizer.
std::int64_t allocations();

}  // namespace lathe::test
