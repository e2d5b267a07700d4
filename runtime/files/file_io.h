#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lathe {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  void close();

 private:
  int fd_ = -1;
};

/// Reads up to bytes.size() bytes from `offset` on. Returns their number, which is smaller only at the end of the
/// file, or -1 with errno set on failure.
std::int64_t read_at(int fd, std::span<std::byte> bytes, std::uint64_t offset);
/// Writes all of `bytes` at the file's position. Returns false with errno set on failure.
bool write_all(int fd, std::span<const std::byte> bytes);

/// Opens a regular file for reading, without blocking (no pipes, no devices). Throws UserError [file_open].
FileDescriptor open_regular_file(const std::filesystem::path& path);
std::uint64_t file_size(const FileDescriptor& file, const std::filesystem::path& path);

/// Returns the content of a regular file. Throws UserError [file_open], [file_read], or [file_too_large] above
/// `limit` bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit);

/// Returns the rest of a stream, such as a pipe, which may be endless. `name` is used in messages. Throws UserError
/// [file_read], or [file_too_large] above `limit` bytes.
std::string read_stream(int fd, std::uint64_t limit, std::string_view name);

/// Makes the entries of a directory durable. Throws UserError [file_write].
void sync_directory(const std::filesystem::path& path);

/// Quotes text for messages: escapes control characters and truncates to 80 characters.
std::string quote(std::string_view text);

}  // namespace lathe
