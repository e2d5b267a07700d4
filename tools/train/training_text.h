#pragma once

#include <filesystem>
#include <string>

namespace lathe::tools {

/// Returns the text to train on: the content of a file or, if no file is given, of all source files in a folder, each
/// preceded by its path. Throws UserErrors of text::read_text() and text::read_folder().
std::string training_text(const std::filesystem::path& file, const std::filesystem::path& sources);

}  // namespace lathe::tools
