#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/mapped_file.h"

namespace lathe {

/// The labels and the advice of errors of an archive.
struct ZipErrors {
  std::string_view damaged;      ///< label for a damaged archive and for a missing file
  std::string_view unsupported;  ///< label for encryption and for a method of compression that is not supported
  std::string_view origin;       ///< advice for a damaged archive
  std::string_view form;         ///< advice for an archive in another form
};

/// A zip file in mapped memory. Files above 4 GiB are in the ZIP64 form. Errors are UserErrors that name the file and
/// the byte.
class ZipArchive {
 public:
  /// Maps a file and reads its directory. Throws UserErrors [file_open], and that of a damaged archive.
  ZipArchive(const std::filesystem::path& path, const ZipErrors& errors);

  const std::string& name() const { return name_; }
  const std::shared_ptr<const MappedFile>& mapped() const { return file_; }

  bool contains(std::string_view name) const { return entries_.contains(name); }
  /// Returns the names of all files in the archive, in the order of their names.
  std::vector<std::string> names() const;
  /// Returns the bytes of a file in the archive, in place. Throws for a file that is missing, compressed or
  /// encrypted, and for one whose bytes are not in the archive.
  std::span<const std::byte> read(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  /// Returns the bytes of a file in the archive, decompressed if its method is deflate, and compared with its
  /// checksum. Throws for a file that is missing, damaged, encrypted or compressed by another method.
  std::vector<std::byte> extract(std::string_view name) const;

 private:
  struct Entry {
    std::uint64_t header = 0;  ///< offset of the local header
    std::uint64_t size = 0, stored_size = 0;
    std::uint32_t method = 0, flags = 0, checksum = 0;
  };
  /// The place of the directory.
  struct Directory {
    std::uint64_t offset = 0, size = 0, entries = 0;
  };

  const Entry& entry(std::string_view name) const;
  /// Returns the bytes of a file as the archive has them.
  std::span<const std::byte> stored(std::string_view name, const Entry& entry) const;
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  Entry read_entry(std::uint64_t at, std::uint64_t name_size, std::uint64_t extra_size) const;
  /// Returns a little-endian number of `size` bytes.
  std::uint64_t number(std::uint64_t at, std::size_t size) const;
  std::span<const std::byte> bytes(std::uint64_t at, std::uint64_t size) const;
  [[noreturn]] void fail(std::uint64_t at, std::string_view text) const;

  ZipErrors errors_;
  std::string name_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace lathe
