#pragma once

#include <filesystem>

#include "runtime/library/library_options.h"

namespace lathe {

/// Writes a file of a library to a folder, and returns its path. The file appears when it is complete. Throws
/// UserError [file_write].
std::filesystem::path write_library_file(const std::filesystem::path& folder, const LibraryFile& file);

/// Writes the header and the archive of a library to a folder, which is created if it is missing:
///
///     const LibraryGraph graphs[] = {{"", step}};
///     write_library("library", emit_library(graphs, {.prefix = "gpt", .most = {{"B", 8}, {"T", 1024}}}));
///
/// Throws UserError [file_write].
void write_library(const std::filesystem::path& folder, const EmittedLibrary& library);

}  // namespace lathe
