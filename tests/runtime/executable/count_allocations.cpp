#include "tests/runtime/executable/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count = 0;
}

#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer has its own operator new
void* operator new(std::size_t size) {
  ++count;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace lathe::test {

std::int64_t allocations() { return count; }

}  // namespace lathe::test
