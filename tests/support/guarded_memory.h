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

  /// Where `bytes` of it begin, as many as asked for or fewer, so that this edge touches an inaccessible page. They
  /// are aligned to their elements and no more, as memory of users may be.
  std::byte* at(GuardedEdge edge, std::size_t bytes) const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t inside_ = 0;  ///< bytes between the pages
};

}  // namespace lathe::test
