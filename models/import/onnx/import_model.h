#pragma once

#include <filesystem>

#include "models/import/import.h"

namespace lathe::onnx {

/// Imports an ONNX file; see importing::import_graph.
importing::ImportedGraph import_model(const std::filesystem::path& file, const importing::ImportOptions& options);

}  // namespace lathe::onnx
