#include "tests/import/support/archive_writer.h"

#include <catch2/catch.hpp>

#include "models/import/pt2/archive/program_tensors.h"
#include "tests/import/support/model_writer.h"
#include "tests/import/support/program_case.h"

namespace lathe::test {

namespace {

/// Appends a little-endian number.
void append(std::string& bytes, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i, value >>= 8) bytes += static_cast<char>(value);
}

/// Appends an entry of the directory. With ZIP64, its numbers are in an extra field.
void append_entry(std::string& bytes, const std::string& name, std::uint64_t size, std::uint64_t offset,
                  std::uint16_t method, bool is_zip64) {
  constexpr std::uint64_t elsewhere = 0xffffffff;
  append(bytes, 0x02014b50, 4);
  append(bytes, 0, 2 + 2 + 2);  // versions and flags
  append(bytes, method, 2);
  append(bytes, 0, 4 + 4);  // time and checksum
  append(bytes, is_zip64 ? elsewhere : size, 4);
  append(bytes, is_zip64 ? elsewhere : size, 4);
  append(bytes, name.size(), 2);
  append(bytes, is_zip64 ? 28 : 0, 2);
  append(bytes, 0, 2 + 2 + 2 + 4);  // comment, disk and attributes
  append(bytes, is_zip64 ? elsewhere : offset, 4);
  bytes += name;
  if (!is_zip64) return;
  append(bytes, 1, 2);
  append(bytes, 24, 2);
  for (const std::uint64_t number : {size, size, offset}) append(bytes, number, 8);
}

void append_end(std::string& bytes, std::size_t count, std::uint64_t start, const ZipForm& form) {
  const std::uint64_t size = bytes.size() - start;
  if (form.is_zip64) {
    const std::uint64_t end = bytes.size();
    append(bytes, 0x06064b50, 4);
    append(bytes, 44, 8);
    append(bytes, 0, 2 + 2 + 4 + 4);
    for (const std::uint64_t number : {std::uint64_t{count}, std::uint64_t{count}, size, start})
      append(bytes, number, 8);
    append(bytes, 0x07064b50, 4);
    append(bytes, 0, 4);
    append(bytes, end, 8);
    append(bytes, 1, 4);
  }
  append(bytes, 0x06054b50, 4);
  append(bytes, 0, 2 + 2);
  append(bytes, form.is_zip64 ? 0xffff : count, 2);
  append(bytes, form.is_zip64 ? 0xffff : count, 2);
  append(bytes, form.is_zip64 ? 0xffffffff : size, 4);
  append(bytes, form.is_zip64 ? 0xffffffff : start, 4);
  append(bytes, form.comment.size(), 2);
  bytes += form.comment;
}

}  // namespace

std::string zip_bytes(const std::map<std::string, std::string>& files, const ZipForm& form) {
  std::string bytes;
  std::map<std::string, std::uint64_t> offsets;
  for (const auto& [name, content] : files) {
    offsets[name] = bytes.size();
    append(bytes, 0x04034b50, 4);
    append(bytes, 0, 2 + 2 + 2 + 4 + 4);  // version, flags, method, time, checksum
    append(bytes, content.size(), 4);
    append(bytes, content.size(), 4);
    append(bytes, name.size(), 2);
    // Content starts at a multiple of 64 bytes, as torch writes it.
    const std::size_t padding = (64 - (bytes.size() + 2 + name.size()) % 64) % 64;
    append(bytes, padding, 2);
    bytes += name + std::string(padding, '\0') + content;
  }
  const std::uint64_t start = bytes.size();
  for (const auto& [name, content] : files)
    append_entry(bytes, name, content.size(), offsets[name], name == form.method_of ? form.method : 0, form.is_zip64);
  append_end(bytes, files.size(), start, form);
  return bytes;
}

ProgramFile::ProgramFile(const std::string& program) {
  const ZipArchive archive(program_folder(program) / "model.pt2", pt2::program_archive_errors);
  for (const std::string& name : archive.names()) files_[name] = archive.text(name);
}

ProgramFile& ProgramFile::replace(const std::string& file, std::string_view from, std::string_view to) {
  std::string& text = files_.at("model/" + file);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return *this;
}

ProgramFile& ProgramFile::set(const std::string& file, std::string bytes) {
  files_["model/" + file] = std::move(bytes);
  return *this;
}

ProgramFile& ProgramFile::remove(const std::string& file) {
  REQUIRE(files_.erase("model/" + file) == 1);
  return *this;
}

std::filesystem::path ProgramFile::write(const ZipForm& form) const { return write_bytes(bytes(form), "model.pt2"); }

}  // namespace lathe::test
