#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lathe {

/// A large block of zeroed memory from the system, in huge pages if available, aligned to 2 MiB (blocks below 2 MiB:
/// to 4 KiB). Pages are allocated when first touched.
class Arena {
 public:
  Arena() = default;
  /// Throws UserError [arena_memory] with the requested and the available size.
  explicit Arena(std::size_t bytes);
  Arena(Arena&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapped_(std::exchange(other.mapped_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Total memory of this machine in bytes, and the memory available without swapping; 0 if unknown.
struct MemoryInfo {
  std::int64_t total = 0, available = 0;
};
MemoryInfo memory_info();

}  // namespace lathe
