#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/object_store.h"

namespace lathe {

/// Returns the default cache folder from the values of $HOME and $XDG_CACHE_HOME; empty if neither is an absolute
/// path.
std::filesystem::path default_cache_dir(std::string_view home, std::string_view xdg_cache_home);

struct DiskCacheStats {
  std::int64_t hits = 0, misses = 0;
  std::int64_t corrupt = 0;  ///< damaged entries, which were removed; also counted as misses
  std::int64_t stored = 0, evicted = 0;
  std::int64_t failed = 0;  ///< entries that could not be written
};

/// A key-value store in a private folder, with one file per entry. Each entry contains its size and the SHA-256 of
/// key and content; damaged entries are removed and treated as missing. Code from the cache is executed, so the
/// folder must be owned by the user and not be writable by others. Otherwise the cache is disabled, with a reason: it
/// finds and stores nothing. Neither get() nor put() throws on disk errors. Any number of threads and processes may
/// share a folder. Entries are stored in a subfolder of the given folder; files that the cache did not write are
/// never changed.
class DiskCache final : public ObjectStore {
 public:
  /// Creates the folder and its subfolder (mode 0700) if they are missing. If the entries exceed `max_bytes`, the
  /// least recently used ones are evicted. An empty path disables the cache.
  explicit DiskCache(const std::filesystem::path& folder, std::uint64_t max_bytes = std::uint64_t{1} << 30);
  ~DiskCache() override;

  std::optional<std::string> get(const std::string& key) override;
  void put(const std::string& key, std::string_view bytes) override;

  bool enabled() const;
  /// Returns why the cache is disabled; empty if it is enabled.
  const std::string& disabled_reason() const;
  /// Returns the folder that contains the entries.
  const std::filesystem::path& folder() const;
  DiskCacheStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
