#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "runtime/files/file_io.h"

namespace lathe {

/// Maps bytes [begin, end) of a file. Writes stay private to this process. The file must not be truncated while the
/// bytes are read.
class MappedPages {
 public:
  /// Requires begin < end. Throws UserError [safetensors_read].
  MappedPages(const FileDescriptor& file, std::uint64_t begin, std::uint64_t end, const std::filesystem::path& path);
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  std::byte* data() const { return data_; }  ///< address of byte `begin`

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

/// Copies bytes out of mapped pages that are not used afterwards. Returns the pages during the copy, so that both
/// copies never occupy memory at the same time.
void move_out_of_pages(std::span<std::byte> from, std::byte* to);

}  // namespace lathe
