#pragma once

#include <filesystem>
#include <string>

namespace lathe::tools {

/// The text that a command is to learn: that of a file, or where none is named of all source files below a folder,
/// each headed by its path. UserErrors of text::read_text() and text::read_folder().
std::string training_text(const std::filesystem::path& file, const std::filesystem::path& sources);

}  // namespace lathe::tools
