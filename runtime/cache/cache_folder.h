#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/files/file_io.h"

namespace lathe::cache {

/// Names of files that are being written.
inline constexpr std::string_view temporary_prefix = ".new-";

/// Of that kind (S_IFDIR, S_IFREG), owned by this user, and writable to nobody else.
bool is_private(const struct stat& status, mode_t kind);

/// Opens a folder that is_private(), and is no link; creates it with mode 0700 where it is missing. On failure the
/// result is closed and `reason` says why.
FileDescriptor open_private_folder(const std::filesystem::path& path, std::string& reason);

struct Trimmed {
  std::uint64_t bytes_left = 0;
  std::int64_t removed = 0;
};
/// If the files hold more than `limit` bytes, removes those last modified longest ago until at most `target` are
/// left. Removes temporary files older than an hour too.
Trimmed trim_folder(const FileDescriptor& directory, std::uint64_t limit, std::uint64_t target);

}  // namespace lathe::cache
