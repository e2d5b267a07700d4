#pragma once

#include <cstddef>

namespace lathe::test {

/// The edge of a block that is next to an inaccessible page: an access beyond it terminates the process with SIGSEGV.
enum class GuardedEdge { end, start };

/// Whole pages between two inaccessible ones.
class GuardedMemory {
 public:
  /// Throws InternalError if the memory cannot be allocated.
  explicit GuardedMemory(std::size_t bytes);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory();

  /// Returns the address of a block of `bytes`, at most the size requested, whose edge is next to an inaccessible
  /// page. With an `alignment` (a power of two, 0 for none), up to alignment - 1 bytes follow the end.
  std::byte* at(GuardedEdge edge, std::size_t bytes, std::size_t alignment = 0) const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t inside_ = 0;  ///< bytes between the inaccessible pages
};

}  // namespace lathe::test
