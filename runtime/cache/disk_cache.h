#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/object_store.h"

namespace lathe {

/// The folder for Lathe's cache, from the values of $HOME and $XDG_CACHE_HOME; empty if neither is an absolute path.
std::filesystem::path default_cache_dir(std::string_view home, std::string_view xdg_cache_home);

struct DiskCacheStats {
  std::int64_t hits = 0, misses = 0;
  std::int64_t corrupt = 0;  ///< entries found damaged, and removed; misses too
  std::int64_t stored = 0, evicted = 0;
  std::int64_t failed = 0;  ///< entries that could not be written
};

/// Bytes by key in one private folder, one file an entry. What get() gives is what put() was given: every entry
/// carries its length and the SHA-256 of key and bytes, and one that does not fit is removed and not found. Since
/// compiled code from here is run, the folder must be the user's own and writable to nobody else; otherwise the cache
/// is disabled: it finds nothing, stores nothing, and says why. Neither get() nor put() throws for want of a good
/// disk. Any number of threads and processes may share a folder. Entries lie in a folder of the cache's own below the
/// one that is named; files that it did not write stay as they are, wherever they lie.
class DiskCache final : public ObjectStore {
 public:
  /// Creates the folder and its own below it (mode 0700) where they are missing. The entries used longest ago go when
  /// all together exceed `max_bytes`. An empty path disables the cache.
  explicit DiskCache(const std::filesystem::path& folder, std::uint64_t max_bytes = std::uint64_t{1} << 30);
  ~DiskCache() override;

  std::optional<std::string> get(const std::string& key) override;
  void put(const std::string& key, std::string_view bytes) override;

  bool enabled() const;
  /// Why it is disabled; empty if it is not.
  const std::string& disabled_reason() const;
  /// Where the entries lie.
  const std::filesystem::path& folder() const;
  DiskCacheStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
