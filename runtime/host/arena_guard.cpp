#include "runtime/host/arena_guard.h"

#include <algorithm>
#include <cstring>

#include "passes/program/program_loops.h"

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
#endif

namespace lathe {

namespace {

#ifdef LATHE_ADDRESS_SANITIZER
constexpr bool address_sanitizer = true;
void close(std::span<std::byte> memory) { __asan_poison_memory_region(memory.data(), memory.size()); }
void open(std::span<std::byte> memory) { __asan_unpoison_memory_region(memory.data(), memory.size()); }
#else
constexpr bool address_sanitizer = false;
void close(std::span<std::byte>) {}
void open(std::span<std::byte>) {}
#endif

}  // namespace

void poison(std::span<std::byte> memory, DType dtype) {
  if (!memory.empty()) std::memset(memory.data(), dtype == boolean ? 1 : 0xff, memory.size());
}

bool ArenaGuard::always_poisons() { return address_sanitizer; }

ArenaGuard::~ArenaGuard() { open(arena_); }

bool ArenaGuard::is_used(int buffer, int launch) const {
  return std::ranges::any_of(program_.launches[launch].buffers,
                             [&](int b) { return storage_of(program_, b) == buffer; });
}

/// Returns whether the contents of a block are undefined until this launch, which accesses it.
bool ArenaGuard::begins(const MemoryPlan::Block& block, int launch) const {
  for (std::size_t i = 0; i < program_.loops.size(); ++i) {
    const ProgramLoop& loop = program_.loops[i];
    const bool keeps = block.first <= loop.first && loop.end - 1 <= block.last;
    if (keeps && loop.contains(launch) && iterations_[i] > 0) return false;
  }
  // Collectives access other blocks earlier than the first launch that does.
  if (program_.loops.empty() || !program_.collectives.empty()) return block.first == launch;
  for (int l = block.first; l < launch; ++l)
    if (is_used(block.buffer, l)) return false;
  return true;
}

void ArenaGuard::before_launch(std::size_t launch) const {
  if (!poisoned_ && !address_sanitizer) return;
  if (program_.collectives.empty()) close(arena_);  // collectives in progress access other buffers
  for (const MemoryPlan::Block& block : plan_.blocks) {
    if (!is_used(block.buffer, static_cast<int>(launch))) continue;
    const ProgramBuffer& buffer = program_.buffers[block.buffer];
    const std::int64_t own = buffer.elements.evaluate(dims_) * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
    const auto bytes = static_cast<std::size_t>(buffer.kind == ProgramBuffer::Kind::scratch ? block.bytes : own);
    const std::span<std::byte> memory = arena_.subspan(static_cast<std::size_t>(block.offset), bytes);
    open(memory);
    if (begins(block, static_cast<int>(launch))) poison(memory, buffer.dtype);
  }
}

}  // namespace lathe
