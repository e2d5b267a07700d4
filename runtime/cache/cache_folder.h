#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/files/file_io.h"

namespace lathe {

/// The folder below the one that the user names. Nothing outside of it is written, listed or removed.
inline constexpr std::string_view cache_folder_name = "lathe-objects";

/// An entry is called by 64 hex digits and begins with `cache_entry_magic`; one that is being written is called
/// ".new-<pid>-<n>". Only what has such a name and such a beginning counts as the cache's own.
inline constexpr std::string_view cache_entry_magic = "LATHEC1\n";
std::string temporary_entry_name(std::int64_t process, std::uint64_t number);

/// Of that kind (S_IFDIR, S_IFREG), owned by this user, and writable to nobody else.
bool is_private(const struct stat& status, mode_t kind);

/// Opens a folder that is_private(), and is no link; creates it with mode 0700 where it is missing. On failure the
/// result is closed and `reason` says why.
FileDescriptor open_private_folder(const std::filesystem::path& path, std::string& reason);

/// The same for `given` and for `cache_folder_name` in it, which is what is opened.
FileDescriptor open_cache_folder(const std::filesystem::path& given, std::string& reason);

struct TrimmedCache {
  std::uint64_t bytes_left = 0;  ///< at most
  std::int64_t removed = 0;
};
/// If the entries hold more than `limit` bytes, removes those last modified longest ago until at most `target` are
/// left. Removes temporary files older than an hour too. Files of anybody else neither count nor go.
TrimmedCache trim_cache_folder(const FileDescriptor& directory, std::uint64_t limit, std::uint64_t target);

}  // namespace lathe
