#pragma once

#include <filesystem>

namespace lathe::tools {

/// Prints to standard error the keys of a model's config.json that are ignored because the original library does not
/// read them. `folder` and `adapter` are those of find_adapted().
void note_ignored_keys(const std::filesystem::path& folder, const std::filesystem::path& adapter = {});

}  // namespace lathe::tools
