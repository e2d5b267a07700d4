#include "runtime/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace lathe {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_prefix = ".new-", digits = "0123456789";

struct Entry {
  std::string name;
  bool temporary = false;
  std::uint64_t bytes = 0;
  timespec modified{};
};

bool older(const Entry& a, const Entry& b) {
  if (a.modified.tv_sec != b.modified.tv_sec) return a.modified.tv_sec < b.modified.tv_sec;
  if (a.modified.tv_nsec != b.modified.tv_nsec) return a.modified.tv_nsec < b.modified.tv_nsec;
  return a.name < b.name;
}

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_entry_name(std::string_view name) { return name.size() == 64 && all_of(name, "0123456789abcdef"); }

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return false;
  name.remove_prefix(temporary_prefix.size());
  const auto dash = name.find('-');
  return dash != std::string_view::npos && all_of(name.substr(0, dash), digits) &&
         all_of(name.substr(dash + 1), digits);
}

/// Returns whether the file starts like an entry. For a temporary file, checks the bytes written so far.
bool has_magic(const FileDescriptor& directory, const Entry& entry) {
  const FileDescriptor file(
      ::openat(directory.get(), entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  std::string start(cache_entry_magic.size(), '\0');
  const std::int64_t count = file.is_open() ? read_at(file.get(), std::as_writable_bytes(std::span(start)), 0) : -1;
  if (count < 0) return false;
  start.resize(static_cast<std::size_t>(count));
  return entry.temporary ? cache_entry_magic.starts_with(start) : start == cache_entry_magic;
}

/// Lists files whose names are those of cache files. Only has_magic() determines whether the cache wrote a file; it
/// takes most of the time.
std::vector<Entry> list_entries(const FileDescriptor& directory) {
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
    Entry entry{.name = item->d_name, .temporary = is_temporary_name(item->d_name)};
    struct stat status{};
    if ((!entry.temporary && !is_entry_name(entry.name)) ||
        ::fstatat(directory.get(), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      continue;
    entry.bytes = static_cast<std::uint64_t>(status.st_size);
    entry.modified = status.st_mtim;
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// Creates missing folders of the path with mode 0700. Returns false with errno set on failure.
bool create_folders(const fs::path& path) {
  if (path.empty() || ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT || !path.has_parent_path() || path.parent_path() == path) return false;
  return create_folders(path.parent_path()) && (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

}  // namespace

std::string temporary_entry_name(std::int64_t process, std::uint64_t number) {
  return fmt::format("{}{}-{}", temporary_prefix, process, number);
}

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

FileDescriptor open_cache_folder(const fs::path& given, std::string& reason) {
  const FileDescriptor outer = open_private_folder(given, reason);
  return outer.is_open() ? open_private_folder(given / cache_folder_name, reason) : FileDescriptor();
}

TrimmedCache trim_cache_folder(const FileDescriptor& directory, std::uint64_t limit, std::uint64_t target) {
  constexpr std::time_t stale_seconds = 3600;
  std::vector<Entry> entries = list_entries(directory);
  const std::time_t now = ::time(nullptr);
  std::erase_if(entries, [&](const Entry& entry) {
    if (!entry.temporary) return false;
    if (now - entry.modified.tv_sec > stale_seconds && has_magic(directory, entry))
      ::unlinkat(directory.get(), entry.name.c_str(), 0);
    return true;
  });
  const auto sum = [&] {
    std::uint64_t bytes = 0;
    for (const Entry& entry : entries) bytes += entry.bytes;
    return bytes;
  };
  TrimmedCache result{.bytes_left = sum()};
  if (result.bytes_left <= limit) return result;
  std::erase_if(entries, [&](const Entry& entry) { return !has_magic(directory, entry); });
  result.bytes_left = sum();
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

}  // namespace lathe
