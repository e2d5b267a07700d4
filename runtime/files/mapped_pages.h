#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "runtime/files/file_io.h"

namespace lathe {

/// Bytes begin .. end of a file, mapped. What is written there stays in this process. They may be read only while
/// nobody shortens the file.
class MappedPages {
 public:
  /// begin < end. UserError [safetensors_read].
  MappedPages(const FileDescriptor& file, std::uint64_t begin, std::uint64_t end, const std::filesystem::path& path);
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  std::byte* data() const { return data_; }  ///< byte `begin`

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

/// Copies bytes out of mapped pages that nobody looks at any more, and gives the pages back on the way, so that both
/// copies never take memory at the same time.
void move_out_of_pages(std::span<std::byte> from, std::byte* to);

}  // namespace lathe
