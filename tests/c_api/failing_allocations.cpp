#include "tests/c_api/failing_allocations.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lathe::test {

namespace {

thread_local long allocations_left = -1;

void* allocate(std::size_t size, std::size_t alignment) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), size ? size : 1) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

void set_allocations_left(long count) { allocations_left = count; }

}  // namespace lathe::test

// These replace the operators of the whole test program.
void* operator new(std::size_t size) { return lathe::test::allocate(size, sizeof(void*) * 2); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return lathe::test::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return operator new(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
