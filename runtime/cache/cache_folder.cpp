#include "runtime/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <system_error>
#include <vector>

namespace lathe::cache {

namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string name;
  std::uint64_t bytes = 0;
  timespec modified{};
};

bool older(const Entry& a, const Entry& b) {
  if (a.modified.tv_sec != b.modified.tv_sec) return a.modified.tv_sec < b.modified.tv_sec;
  if (a.modified.tv_nsec != b.modified.tv_nsec) return a.modified.tv_nsec < b.modified.tv_nsec;
  return a.name < b.name;
}

std::vector<Entry> list_files(const FileDescriptor& directory) {
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  std::vector<Entry> entries;
  const int copy = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return entries;
  const std::unique_ptr<DIR, Close> stream(::fdopendir(copy));
  if (!stream) {
    ::close(copy);
    return entries;
  }
  while (const dirent* item = ::readdir(stream.get())) {
    struct stat status{};
    if (::fstatat(directory.get(), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      continue;
    entries.push_back({item->d_name, static_cast<std::uint64_t>(status.st_size), status.st_mtim});
  }
  return entries;
}

/// Creates what is missing of the path, each folder with mode 0700; false with errno set on failure.
bool create_folders(const fs::path& path) {
  if (path.empty() || ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT || !path.has_parent_path() || path.parent_path() == path) return false;
  return create_folders(path.parent_path()) && (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

}  // namespace

bool is_private(const struct stat& status, mode_t kind) {
  return (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

FileDescriptor open_private_folder(const fs::path& path, std::string& reason) {
  const auto fail = [&](std::string_view why) {
    reason = path.empty() ? std::string(why) : fmt::format("{}: {}", path.string(), why);
    return FileDescriptor();
  };
  if (path.empty()) return fail("there is no cache folder: neither a home folder nor a path is given");
  if (!create_folders(path)) return fail("cannot be created: " + std::generic_category().message(errno));
  FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open())
    return fail(errno == ELOOP || errno == ENOTDIR ? "is a link or no folder"
                                                   : "cannot be opened: " + std::generic_category().message(errno));
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0) return fail(std::generic_category().message(errno));
  if (status.st_uid != ::geteuid())
    return fail(fmt::format("belongs to user {}, not to user {}", status.st_uid, ::geteuid()));
  if (!is_private(status, S_IFDIR))
    return fail(fmt::format("others may write there (mode {:04o}); use chmod go-w", status.st_mode & 07777));
  if (::faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return fail("is not writable: " + std::generic_category().message(errno));
  return directory;
}

Trimmed trim_folder(const FileDescriptor& directory, std::uint64_t limit, std::uint64_t target) {
  constexpr std::time_t stale_seconds = 3600;
  std::vector<Entry> entries = list_files(directory);
  const std::time_t now = ::time(nullptr);
  std::erase_if(entries, [&](const Entry& entry) {
    if (!entry.name.starts_with(temporary_prefix)) return false;
    if (now - entry.modified.tv_sec > stale_seconds) ::unlinkat(directory.get(), entry.name.c_str(), 0);
    return true;
  });
  Trimmed result;
  for (const Entry& entry : entries) result.bytes_left += entry.bytes;
  if (result.bytes_left <= limit) return result;
  std::ranges::sort(entries, older);
  for (const Entry& entry : entries) {
    if (result.bytes_left <= target) break;
    if (::unlinkat(directory.get(), entry.name.c_str(), 0) != 0 && errno != ENOENT) continue;
    result.bytes_left -= entry.bytes;
    ++result.removed;
  }
  return result;
}

}  // namespace lathe::cache
