#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/write/atomic_file.h"

namespace lathe {

/// Writes a zip file, whose files are stored without compression. Equal contents give equal bytes: all files have the
/// date 1980-01-01.
class ZipWriter {
 public:
  /// Sizes and offsets from `zip64_from` on are written in the ZIP64 form, as the format requires from 2^32 - 1 on.
  explicit ZipWriter(AtomicFile& file, std::uint64_t zip64_from = 0xffffffff)
      : file_(file), zip64_from_(zip64_from) {}

  /// Appends a file. Its content is the parts, one after the other. The name must have less than 2^16 bytes.
  void add(std::string_view name, std::initializer_list<std::span<const std::byte>> parts);
  /// Writes the directory. add() must not be called after it. The caller commits the file.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t size = 0, offset = 0;
    std::uint32_t checksum = 0;
  };
  void write(std::string_view bytes);
  bool is_large(std::uint64_t number) const { return number >= zip64_from_; }
  void write_entry(const Entry& entry);

  AtomicFile& file_;
  std::uint64_t zip64_from_;
  std::uint64_t size_ = 0;  ///< bytes written
  std::vector<Entry> entries_;
};

}  // namespace lathe
