#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lathe {

/// Looks at paths that a user, a config or an index names. A missing path is an answer; a path that cannot be looked
/// at (a name that is too long, a link to itself, a folder without permission) is UserError [file_open].
/// Code outside of this file calls std::filesystem's functions only with an std::error_code (tests/structure).
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_plain_file(const std::filesystem::path& path);

/// A path for messages: quoted, control characters escaped, whole unless it is very long.
std::string quote_path(const std::filesystem::path& path);

/// The entries of a folder, sorted. UserError [file_open] where it cannot be listed.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

/// The path from the root of the file system. UserError [file_open] where the current folder is gone.
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Creates a folder and the folders above it where they are missing. UserError [file_write].
void make_folders(const std::filesystem::path& folder);

}  // namespace lathe
