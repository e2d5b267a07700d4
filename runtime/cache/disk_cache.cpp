#include "runtime/cache/disk_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "runtime/cache/cache_folder.h"
#include "runtime/files/file_io.h"
#include "runtime/files/sha256.h"

namespace lathe {

namespace {

namespace fs = std::filesystem;

/// Header of an entry: magic (8 bytes), size of the content (8, little-endian), SHA-256 of key, zero and content
/// (32).
constexpr std::size_t header_bytes = cache_entry_magic.size() + 8 + 32;

std::string make_header(const std::string& key, std::string_view bytes) {
  std::string header(cache_entry_magic);
  for (int i = 0; i < 8; ++i) header += static_cast<char>(static_cast<std::uint64_t>(bytes.size()) >> (8 * i));
  Sha256 hash;
  hash.update(key);
  hash.update(std::string_view("\0", 1));
  hash.update(bytes);
  for (const std::uint8_t byte : hash.finish()) header += static_cast<char>(byte);
  return header;
}

}  // namespace

std::filesystem::path default_cache_dir(std::string_view home, std::string_view xdg_cache_home) {
  if (xdg_cache_home.starts_with('/')) return fs::path(xdg_cache_home) / "lathe";
  if (home.starts_with('/')) return fs::path(home) / ".cache" / "lathe";
  return {};
}

struct DiskCache::Impl {
  Impl(const fs::path& named, std::uint64_t most)
      : folder(named.empty() ? named : named / cache_folder_name),
        max_bytes(most),
        directory(open_cache_folder(named, reason)) {}

  std::optional<std::string> read_entry(const std::string& key, const std::string& file_name);
  bool write_entry(const std::string& key, const std::string& file_name, std::string_view bytes);
  void account(std::uint64_t added);

  fs::path folder;
  std::uint64_t max_bytes;
  std::string reason;  ///< reason if the cache is disabled
  FileDescriptor directory;

  std::mutex size_mutex;
  std::optional<std::uint64_t> size;  ///< total size of the entries, if known; guarded by size_mutex
  std::atomic<std::uint64_t> next_temporary = 0;
  std::atomic<std::int64_t> hits = 0, misses = 0, corrupt = 0, stored = 0, evicted = 0, failed = 0;
};

DiskCache::DiskCache(const std::filesystem::path& folder, std::uint64_t max_bytes)
    : impl_(std::make_unique<Impl>(folder, max_bytes)) {}

DiskCache::~DiskCache() = default;

bool DiskCache::enabled() const { return impl_->directory.is_open(); }
const std::string& DiskCache::disabled_reason() const { return impl_->reason; }
const std::filesystem::path& DiskCache::folder() const { return impl_->folder; }

DiskCacheStats DiskCache::stats() const {
  return {.hits = impl_->hits,
          .misses = impl_->misses,
          .corrupt = impl_->corrupt,
          .stored = impl_->stored,
          .evicted = impl_->evicted,
          .failed = impl_->failed};
}

std::optional<std::string> DiskCache::get(const std::string& key) {
  if (!enabled()) return std::nullopt;
  std::optional<std::string> bytes = impl_->read_entry(key, sha256_hex(key));
  ++(bytes ? impl_->hits : impl_->misses);
  return bytes;
}

void DiskCache::put(const std::string& key, std::string_view bytes) {
  if (!enabled() || bytes.size() > impl_->max_bytes / 2) return;
  if (!impl_->write_entry(key, sha256_hex(key), bytes)) {
    ++impl_->failed;
    return;
  }
  ++impl_->stored;
  impl_->account(header_bytes + bytes.size());
}

std::optional<std::string> DiskCache::Impl::read_entry(const std::string& key, const std::string& file_name) {
  const FileDescriptor file(
      ::openat(directory.get(), file_name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  const auto remove = [&] {
    ++corrupt;
    ::unlinkat(directory.get(), file_name.c_str(), 0);
    return std::nullopt;
  };
  if (!file.is_open()) return errno == ELOOP ? remove() : std::nullopt;
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return std::nullopt;
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (!is_private(status, S_IFREG) || file_bytes < header_bytes || file_bytes - header_bytes > max_bytes)
    return remove();
  std::string header(header_bytes, '\0'), bytes(file_bytes - header_bytes, '\0');
  if (read_at(file.get(), std::as_writable_bytes(std::span(header)), 0) != static_cast<std::int64_t>(header.size()) ||
      read_at(file.get(), std::as_writable_bytes(std::span(bytes)), header_bytes) !=
          static_cast<std::int64_t>(bytes.size()))
    return std::nullopt;
  if (header != make_header(key, bytes)) return remove();
  ::futimens(file.get(), nullptr);  // sets the time of last use; a failure only makes the entry look older
  return bytes;
}

bool DiskCache::Impl::write_entry(const std::string& key, const std::string& file_name, std::string_view bytes) {
  const std::string temporary = temporary_entry_name(::getpid(), next_temporary++);
  ::unlinkat(directory.get(), temporary.c_str(), 0);  // may be left by a killed process with this id
  FileDescriptor file(
      ::openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return false;
  const std::string header = make_header(key, bytes);
  const bool written = write_all(file.get(), std::as_bytes(std::span(header))) &&
                       write_all(file.get(), std::as_bytes(std::span(bytes)));
  file.close();
  // No sync is needed: an entry that is incomplete after a crash fails its checksum.
  if (written && ::renameat(directory.get(), temporary.c_str(), directory.get(), file_name.c_str()) == 0) return true;
  ::unlinkat(directory.get(), temporary.c_str(), 0);
  return false;
}

void DiskCache::Impl::account(std::uint64_t added) {
  const std::lock_guard lock(size_mutex);
  if (size) {
    *size += added;
    if (*size <= max_bytes) return;
  }
  // List the folder the first time and whenever the sum exceeds the limit, because other processes use the folder
  // too. Evicting well below the limit makes that rare.
  const TrimmedCache trimmed = trim_cache_folder(directory, max_bytes, max_bytes - max_bytes / 8);
  evicted += trimmed.removed;
  size = trimmed.bytes_left;
}

}  // namespace lathe
