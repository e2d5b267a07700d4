#pragma once

#include <cstdint>

namespace lathe::test {

/// How often operator new was called so far, by any thread; with AddressSanitizer always 0.
std::int64_t allocations();

}  // namespace lathe::test
