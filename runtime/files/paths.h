#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lathe {

/// Checks for paths given by a user, a config or an index. A missing path returns false. A path that cannot be
/// checked (the name is too long, a link to itself, no permission) throws UserError [file_open]. Code outside of this
/// file calls std::filesystem's functions only with an std::error_code (tests/structure).
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_plain_file(const std::filesystem::path& path);

/// Quotes a path for messages: escapes control characters, truncates only very long paths.
std::string quote_path(const std::filesystem::path& path);

/// Returns the sorted entries of a folder. Throws UserError [file_open] if it cannot be listed.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

/// Returns the absolute path. Throws UserError [file_open] if the current folder does not exist.
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Creates a folder and its parents if they are missing. Throws UserError [file_write].
void make_folders(const std::filesystem::path& folder);

}  // namespace lathe
