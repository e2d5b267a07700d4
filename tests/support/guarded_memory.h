#pragma once

#include <cstddef>

namespace lathe::test {

/// The edge of some bytes that touches an inaccessible page: an access beyond it ends the process with SIGSEGV.
enum class GuardedEdge { end, start };

/// Whole pages between two inaccessible ones.
class GuardedMemory {
 public:
  /// Throws InternalError where the system gives no memory.
  explicit GuardedMemory(std::size_t bytes);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory();

  /// Returns the address of `bytes`, at most the number asked for, whose edge touches an inaccessible page. With an
  /// `alignment` (a power of two, 0 for none) up to alignment - 1 bytes follow the end.
  std::byte* at(GuardedEdge edge, std::size_t bytes, std::size_t alignment = 0) const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t inside_ = 0;  ///< bytes between the pages
};

}  // namespace lathe::test
