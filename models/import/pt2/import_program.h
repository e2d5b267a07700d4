#pragma once

#include <filesystem>

#include "models/import/import.h"

namespace lathe::pt2 {

/// Imports a .pt2 file; see importing::import_graph.
importing::ImportedGraph import_program(const std::filesystem::path& file, const importing::ImportOptions& options);

}  // namespace lathe::pt2
