#pragma once

#include <cstdint>

namespace lathe::test {

/// How often operator new was called so far, by any thread.
std::int64_t allocations();

}  // namespace lathe::test
