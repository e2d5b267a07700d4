#include "runtime/machine/arena_guard.h"

#include <algorithm>
#include <cstring>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LATHE_ADDRESS_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LATHE_ADDRESS_SANITIZER
#endif

#ifdef LATHE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>

namespace lathe {

ArenaGuard::~ArenaGuard() { __asan_unpoison_memory_region(arena_.data(), arena_.size()); }

void ArenaGuard::before_launch(std::size_t launch) const {
  __asan_poison_memory_region(arena_.data(), arena_.size());
  const std::vector<int>& used = program_.launches[launch].buffers;
  for (const MemoryPlan::Block& block : plan_.blocks) {
    if (std::find(used.begin(), used.end(), block.buffer) == used.end()) continue;
    const ProgramBuffer& buffer = program_.buffers[static_cast<std::size_t>(block.buffer)];
    const std::int64_t own = buffer.elements.evaluate(dims_) * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
    const auto bytes = static_cast<std::size_t>(buffer.kind == ProgramBuffer::Kind::scratch ? block.bytes : own);
    std::byte* const at = arena_.data() + block.offset;
    __asan_unpoison_memory_region(at, bytes);
    if (block.first == static_cast<int>(launch)) std::memset(at, buffer.dtype == boolean ? 1 : 0xff, bytes);
  }
}

}  // namespace lathe

#else

namespace lathe {

ArenaGuard::~ArenaGuard() = default;
void ArenaGuard::before_launch(std::size_t) const {}

}  // namespace lathe

#endif
