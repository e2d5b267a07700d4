#include "runtime/files/file_io.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/visible.h"

namespace lathe {

namespace {

std::string error_text(int code) { return std::generic_category().message(code); }

constexpr std::size_t largest_transfer = std::size_t{1} << 30;

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileDescriptor::~FileDescriptor() { close(); }

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::int64_t read_at(int fd, std::span<std::byte> bytes, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t wanted = std::min(bytes.size() - done, largest_transfer);
    const ssize_t count = ::pread(fd, bytes.data() + done, wanted, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::int64_t>(done);
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), largest_transfer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

FileDescriptor open_regular_file(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open())
    throw UserError(fmt::format("cannot open {}: {}", path.string(), error_text(errno)), "file_open");
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw UserError(fmt::format("{} is not a regular file", path.string()), "file_open");
  return file;
}

std::uint64_t file_size(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    throw UserError(fmt::format("cannot read {}: {}", path.string(), error_text(errno)), "file_read");
  return static_cast<std::uint64_t>(status.st_size);
}

std::string read_file(const std::filesystem::path& path, std::uint64_t limit) {
  const FileDescriptor file = open_regular_file(path);
  const std::uint64_t size = file_size(file, path);
  if (size > limit)
    throw UserError(fmt::format("{} has {} bytes, more than {}", path.string(), size, limit), "file_too_large");
  std::string text(size, '\0');
  const std::int64_t count = read_at(file.get(), std::as_writable_bytes(std::span(text)), 0);
  if (count < 0) throw UserError(fmt::format("cannot read {}: {}", path.string(), error_text(errno)), "file_read");
  text.resize(static_cast<std::size_t>(count));
  return text;
}

std::string read_stream(int fd, std::uint64_t limit, std::string_view name) {
  constexpr std::size_t block = std::size_t{1} << 16;
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + block);
    const ssize_t count = ::read(fd, text.data() + before, block);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw UserError(fmt::format("cannot read {}: {}", name, error_text(errno)), "file_read");
    if (count == 0) return text;
    if (text.size() > limit) throw UserError(fmt::format("{} has more than {} bytes", name, limit), "file_too_large");
  }
}

void sync_directory(const std::filesystem::path& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL means that the file system cannot sync directories, which is not an error.
  if (!directory.is_open() || (::fsync(directory.get()) != 0 && errno != EINVAL))
    throw UserError(fmt::format("cannot sync the folder {}: {}", path.string(), error_text(errno)), "file_write");
}

std::string quote(std::string_view text) {
  constexpr std::size_t limit = 80;
  std::string result = "'";
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view shown = text.substr(at, first_character(text.substr(at)).bytes);
    if (at + shown.size() > limit) return result + "'...";
    result += shown == "'" ? "\\x27" : shown == "\\" ? "\\x5c" : visible(shown);
    at += shown.size();
  }
  return result + "'";
}

}  // namespace lathe
