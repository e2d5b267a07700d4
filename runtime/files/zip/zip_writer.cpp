#include "runtime/files/zip/zip_writer.h"

#include <algorithm>

#include "runtime/files/zip/crc32.h"

namespace lathe {

namespace {

constexpr std::uint64_t elsewhere16 = 0xffff, elsewhere32 = 0xffffffff;  ///< the ZIP64 form has the number
constexpr std::uint64_t zip64_field = 1, zip64_version = 45, plain_version = 20;
constexpr std::uint64_t date = 0x0021;  // 1980-01-01

/// A record with little-endian numbers.
class Record {
 public:
  Record& add(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes;
};

/// Bit 11: the name is UTF-8.
std::uint64_t flags_of(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; }) ? 0 : 0x800;
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  size_ += bytes.size();
}

void ZipWriter::add(std::string_view name, std::initializer_list<std::span<const std::byte>> parts) {
  Entry entry{.name = std::string(name), .offset = size_};
  for (const auto& part : parts) {
    entry.size += part.size();
    entry.checksum = crc32(part, entry.checksum);
  }
  const bool is_zip64 = is_large(entry.size);
  Record header;
  header.add(0x04034b50, 4).add(is_zip64 ? zip64_version : plain_version, 2).add(flags_of(name), 2);
  header.add(0, 2).add(0, 2).add(date, 2).add(entry.checksum, 4);  // method, time
  for (int i = 0; i < 2; ++i) header.add(is_zip64 ? elsewhere32 : entry.size, 4);
  header.add(name.size(), 2).add(is_zip64 ? 20 : 0, 2);
  header.bytes += name;
  if (is_zip64) header.add(zip64_field, 2).add(16, 2).add(entry.size, 8).add(entry.size, 8);
  write(header.bytes);
  for (const auto& part : parts) {
    file_.write(part);
    size_ += part.size();
  }
  entries_.push_back(std::move(entry));
}

/// Writes an entry of the directory.
void ZipWriter::write_entry(const Entry& entry) {
  const bool is_large_file = is_large(entry.size), is_far = is_large(entry.offset);
  Record extra;
  if (is_large_file) extra.add(entry.size, 8).add(entry.size, 8);
  if (is_far) extra.add(entry.offset, 8);
  const std::uint64_t version = extra.bytes.empty() ? plain_version : zip64_version;
  Record record;
  record.add(0x02014b50, 4).add(version, 2).add(version, 2).add(flags_of(entry.name), 2);
  record.add(0, 2).add(0, 2).add(date, 2).add(entry.checksum, 4);
  for (int i = 0; i < 2; ++i) record.add(is_large_file ? elsewhere32 : entry.size, 4);
  record.add(entry.name.size(), 2).add(extra.bytes.empty() ? 0 : extra.bytes.size() + 4, 2);
  record.add(0, 2).add(0, 2).add(0, 2).add(0, 4);  // comment, disk, attributes
  record.add(is_far ? elsewhere32 : entry.offset, 4);
  record.bytes += entry.name;
  if (!extra.bytes.empty()) record.add(zip64_field, 2).add(extra.bytes.size(), 2).bytes += extra.bytes;
  write(record.bytes);
}

void ZipWriter::finish() {
  const std::uint64_t start = size_, count = entries_.size();
  for (const Entry& entry : entries_) write_entry(entry);
  const std::uint64_t end = size_, size = end - start;
  const bool is_zip64 = count >= elsewhere16 || is_large(start) || is_large(size);
  Record record;
  if (is_zip64) {
    record.add(0x06064b50, 4).add(44, 8).add(zip64_version, 2).add(zip64_version, 2).add(0, 4).add(0, 4);
    record.add(count, 8).add(count, 8).add(size, 8).add(start, 8);
    record.add(0x07064b50, 4).add(0, 4).add(end, 8).add(1, 4);
  }
  record.add(0x06054b50, 4).add(0, 2).add(0, 2);
  for (int i = 0; i < 2; ++i) record.add(is_zip64 ? elsewhere16 : count, 2);
  record.add(is_zip64 ? elsewhere32 : size, 4).add(is_zip64 ? elsewhere32 : start, 4).add(0, 2);
  write(record.bytes);
}

}  // namespace lathe
