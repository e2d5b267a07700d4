#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/files/file_io.h"

namespace lathe {

/// The subfolder of the user's folder. Nothing outside of it is written, listed or removed.
inline constexpr std::string_view cache_folder_name = "lathe-objects";

/// The name of an entry is 64 hex digits, and its content starts with `cache_entry_magic`. A temporary file is called
/// ".new-<pid>-<n>". Only files with such a name and start belong to the cache.
inline constexpr std::string_view cache_entry_magic = "LATHEC1\n";
std::string temporary_entry_name(std::int64_t process, std::uint64_t number);

/// Returns whether the file is of this kind (S_IFDIR, S_IFREG), owned by this user, and not writable by others.
bool is_private(const struct stat& status, mode_t kind);

/// Opens a folder that is_private() and not a symbolic link; creates it with mode 0700 if it is missing. On failure,
/// the result is closed and `reason` is set.
FileDescriptor open_private_folder(const std::filesystem::path& path, std::string& reason);

/// Does the same for `given` and then for its subfolder `cache_folder_name`. Returns the subfolder.
FileDescriptor open_cache_folder(const std::filesystem::path& given, std::string& reason);

struct TrimmedCache {
  std::uint64_t bytes_left = 0;  ///< upper bound
  std::int64_t removed = 0;
};
/// If the entries exceed `limit` bytes, removes the least recently modified ones until at most `target` bytes are
/// left. Also removes temporary files older than an hour. Ignores all other files.
TrimmedCache trim_cache_folder(const FileDescriptor& directory, std::uint64_t limit, std::uint64_t target);

}  // namespace lathe
