#include "runtime/files/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>

#include "ir/support/error.h"

namespace lathe {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int code) {
  throw UserError(fmt::format("cannot lock {}: {}", path.string(), std::generic_category().message(code)),
                  "file_lock");
}

/// Writes the holder's process id for error messages. The lock does not depend on it.
void write_holder(const FileDescriptor& file) {
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) == 0) write_all(file.get(), std::as_bytes(std::span(text)));
}

}  // namespace

std::optional<FileLock> FileLock::take(const std::filesystem::path& path, std::chrono::milliseconds timeout) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file.is_open()) fail(path, errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail(path, errno);
  if (!S_ISREG(status.st_mode)) fail(path, EINVAL);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) fail(path, errno);
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  write_holder(file);
  return FileLock(std::move(file));
}

std::string FileLock::holder(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::array<char, 32> text{};
  const std::int64_t count = file.is_open() ? read_at(file.get(), std::as_writable_bytes(std::span(text)), 0) : -1;
  std::int64_t process = 0;
  if (count > 0) std::from_chars(text.data(), text.data() + count, process);
  return process > 0 ? fmt::format("process {}", process) : "another process";
}

}  // namespace lathe
