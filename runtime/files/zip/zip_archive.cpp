#include "runtime/files/zip/zip_archive.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "runtime/files/other_format.h"
#include "runtime/files/zip/crc32.h"
#include "runtime/files/zip/inflate.h"

namespace lathe {

namespace {

/// Signatures of the parts of a zip file, and their sizes without names, in bytes.
constexpr std::uint64_t local_signature = 0x04034b50, local_size = 30;
constexpr std::uint64_t entry_signature = 0x02014b50, entry_size = 46;
constexpr std::uint64_t end_signature = 0x06054b50, end_size = 22;
constexpr std::uint64_t zip64_end_signature = 0x06064b50, zip64_end_size = 56;
constexpr std::uint64_t zip64_locator_signature = 0x07064b50, zip64_locator_size = 20;

constexpr std::uint64_t unknown16 = 0xffff, unknown32 = 0xffffffff;  ///< the ZIP64 form has the number

constexpr std::uint32_t deflate_method = 8;

std::string_view method_name(std::uint32_t method) {
  switch (method) {
    case deflate_method: return "deflate";
    case 9: return "deflate64";
    case 12: return "bzip2";
    case 14: return "LZMA";
    case 93: return "Zstandard";
    default: return "an unknown method";
  }
}

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path, const ZipErrors& errors)
    : errors_(errors), name_(path.filename().string()), file_(MappedFile::open(path)) {
  const auto all = file_->bytes();
  const std::string_view start(reinterpret_cast<const char*>(all.data()), std::min<std::size_t>(all.size(), 64));
  if (!start.starts_with("PK")) {
    reject_other_format(start, name_);
    fail(0, "this is not a zip file");
  }
  read_directory(find_directory());
}

void ZipArchive::fail(std::uint64_t at, std::string_view text) const {
  throw UserError(fmt::format("{}: byte {}: {}", name_, at, text), errors_.damaged, errors_.origin);
}

std::span<const std::byte> ZipArchive::bytes(std::uint64_t at, std::uint64_t size) const {
  const std::uint64_t all = file_->bytes().size();
  if (at > all || size > all - at) fail(at, fmt::format("{} bytes are not in the file, which has {}", size, all));
  return file_->bytes().subspan(at, size);
}

std::uint64_t ZipArchive::number(std::uint64_t at, std::size_t size) const {
  const std::span<const std::byte> source = bytes(at, size);
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(source[i]);
  return value;
}

/// The end record is the last part of the file, before a comment of up to 64 KiB.
ZipArchive::Directory ZipArchive::find_directory() const {
  const std::uint64_t size = file_->bytes().size();
  if (size < end_size) fail(size, "the file ends before the directory of the archive");
  const std::uint64_t farthest = std::min<std::uint64_t>(size - end_size, unknown16);
  for (std::uint64_t back = 0; back <= farthest; ++back) {
    const std::uint64_t at = size - end_size - back;
    if (number(at, 4) != end_signature || number(at + 20, 2) != back) continue;
    if (number(at + 4, 2) != 0 || number(at + 6, 2) != 0) fail(at, "the archive is split over several files");
    const Directory found{number(at + 16, 4), number(at + 12, 4), number(at + 10, 2)};
    const bool is_zip64 = found.offset == unknown32 || found.size == unknown32 || found.entries == unknown16;
    if (!is_zip64 || at < zip64_locator_size) return found;
    const std::uint64_t locator = at - zip64_locator_size;
    if (number(locator, 4) != zip64_locator_signature) return found;
    const std::uint64_t end = number(locator + 8, 8);
    bytes(end, zip64_end_size);
    if (number(end, 4) != zip64_end_signature) fail(end, "the ZIP64 record has another signature");
    return {number(end + 48, 8), number(end + 40, 8), number(end + 32, 8)};
  }
  fail(size, "the archive has no directory: the file may be truncated");
}

void ZipArchive::read_directory(const Directory& directory) {
  bytes(directory.offset, directory.size);
  const std::uint64_t end = directory.offset + directory.size;
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (end - at < entry_size || number(at, 4) != entry_signature)
      fail(at, fmt::format("the directory has no entry {} of {}", i, directory.entries));
    const std::uint64_t name_size = number(at + 28, 2), extra_size = number(at + 30, 2);
    const std::uint64_t whole = entry_size + name_size + extra_size + number(at + 32, 2);
    if (whole > end - at) fail(at, "the entry is larger than the directory");
    const std::span<const std::byte> text = bytes(at + entry_size, name_size);
    std::string name(reinterpret_cast<const char*>(text.data()), text.size());
    if (!entries_.emplace(name, read_entry(at, name_size, extra_size)).second)
      fail(at, fmt::format("the file '{}' is in the archive twice", name));
    at += whole;
  }
}

/// Sizes and offsets of 2^32 - 1 are in the extra field 1, in the order of the entry.
ZipArchive::Entry ZipArchive::read_entry(std::uint64_t at, std::uint64_t name_size, std::uint64_t extra_size) const {
  Entry entry{.header = number(at + 42, 4),
              .size = number(at + 24, 4),
              .stored_size = number(at + 20, 4),
              .method = static_cast<std::uint32_t>(number(at + 10, 2)),
              .flags = static_cast<std::uint32_t>(number(at + 8, 2)),
              .checksum = static_cast<std::uint32_t>(number(at + 16, 4))};
  std::uint64_t field = at + entry_size + name_size;
  const std::uint64_t end = field + extra_size;
  while (end - field >= 4) {
    const std::uint64_t size = number(field + 2, 2), next = field + 4 + size;
    if (next > end) fail(field, "an extra field is larger than its entry");
    if (number(field, 2) == 1) {
      std::uint64_t value = field + 4;
      for (std::uint64_t* const part : {&entry.size, &entry.stored_size, &entry.header}) {
        if (*part != unknown32) continue;
        if (next - value < 8) fail(field, "the ZIP64 field is too small");
        *part = number(value, 8);
        value += 8;
      }
    }
    field = next;
  }
  return entry;
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  return all;
}

const ZipArchive::Entry& ZipArchive::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw UserError(fmt::format("{}: there is no file '{}' in the archive", name_, name), errors_.damaged,
                    errors_.origin);
  return found->second;
}

std::span<const std::byte> ZipArchive::stored(std::string_view name, const Entry& entry) const {
  if ((entry.flags & 1) != 0)
    throw UserError(fmt::format("{}: the file '{}' is encrypted", name_, name), errors_.unsupported, errors_.form);
  bytes(entry.header, local_size);
  if (number(entry.header, 4) != local_signature)
    fail(entry.header, fmt::format("the header of the file '{}' has another signature", name));
  const std::uint64_t before = local_size + number(entry.header + 26, 2) + number(entry.header + 28, 2);
  return bytes(entry.header + before, entry.stored_size);
}

std::span<const std::byte> ZipArchive::read(std::string_view name) const {
  const Entry& found = entry(name);
  if (found.method != 0)
    throw UserError(fmt::format("{}: the file '{}' is compressed by {}", name_, name, method_name(found.method)),
                    errors_.unsupported, errors_.form);
  if (found.size != found.stored_size) fail(found.header, fmt::format("the file '{}' has two sizes", name));
  return stored(name, found);
}

std::vector<std::byte> ZipArchive::extract(std::string_view name) const {
  const Entry& found = entry(name);
  std::vector<std::byte> content;
  if (found.method != deflate_method) {
    const std::span<const std::byte> whole = read(name);
    content.assign(whole.begin(), whole.end());
  } else {
    const std::span<const std::byte> compressed = stored(name, found);
    constexpr std::uint64_t largest_ratio = 1032;  // 258 bytes for two bits
    if (found.size / largest_ratio > compressed.size())
      fail(found.header,
           fmt::format("the file '{}' has {} compressed bytes for {}", name, compressed.size(), found.size));
    content.resize(found.size);
    if (const auto fault = inflate(compressed, content))
      fail(found.header, fmt::format("the file '{}' is damaged: {}", name, *fault));
  }
  if (crc32(content) != found.checksum)
    fail(found.header, fmt::format("the file '{}' differs from its checksum", name));
  return content;
}

std::string_view ZipArchive::text(std::string_view name) const {
  const std::span<const std::byte> found = read(name);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

}  // namespace lathe
