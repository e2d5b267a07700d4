#include "tests/support/programs/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ir/support/error.h"

namespace lathe::test {

namespace {
std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes)
    : inside_(std::max<std::size_t>(1, (bytes + page_size() - 1) / page_size()) * page_size()) {
  const std::size_t page = page_size();
  void* const mapping = ::mmap(nullptr, inside_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw InternalError("guarded memory: mmap failed");
  mapping_ = static_cast<std::byte*>(mapping);
  if (::mprotect(mapping_ + page, inside_, PROT_READ | PROT_WRITE) != 0)
    throw InternalError("guarded memory: mprotect failed");
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), inside_(other.inside_) {}

GuardedMemory::~GuardedMemory() {
  if (mapping_) ::munmap(mapping_, inside_ + 2 * page_size());
}

std::byte* GuardedMemory::at(GuardedEdge edge, std::size_t bytes, std::size_t alignment) const {
  if (alignment > 0) bytes = (bytes + alignment - 1) / alignment * alignment;
  LATHE_ASSERT(bytes <= inside_);
  return mapping_ + page_size() + (edge == GuardedEdge::end ? inside_ - bytes : 0);
}

}  // namespace lathe::test
