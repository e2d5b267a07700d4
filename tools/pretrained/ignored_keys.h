#pragma once

#include <filesystem>

namespace lathe::tools {

/// Prints to standard error which keys of a model's config.json are ignored because the original library does not
/// read them. `folder` and `adapter` are as find_adapted() takes them.
void note_ignored_keys(const std::filesystem::path& folder, const std::filesystem::path& adapter = {});

}  // namespace lathe::tools
