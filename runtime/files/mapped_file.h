#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace lathe {

class MappedPages;

/// A file in memory, mapped in place. Writes stay private to the process. The file must not be truncated while it is
/// mapped.
class MappedFile {
 public:
  /// Throws UserError [file_open] if the file cannot be opened, and [safetensors_read] if it cannot be mapped.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// The bytes of the file; empty for an empty file.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  std::unique_ptr<MappedPages> pages_;
  std::span<std::byte> bytes_;
};

}  // namespace lathe
