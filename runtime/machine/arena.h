#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lathe {

/// One large block of zeroed memory from the system, in huge pages where it gives them, aligned to 2 MiB (a block
/// below 2 MiB: to 4 KiB). Pages take memory when first touched.
class Arena {
 public:
  Arena() = default;
  /// UserError [arena_memory] says how much was wanted and how much there is.
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

/// Memory of this machine in bytes, and what can be had now without swapping; 0 where the system does not say.
struct MemoryInfo {
  std::int64_t total = 0, available = 0;
};
MemoryInfo memory_info();

}  // namespace lathe
