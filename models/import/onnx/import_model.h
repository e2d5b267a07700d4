#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/import/import.h"

namespace lathe::onnx {

/// Imports an ONNX file; see importing::import_graph.
importing::ImportedGraph import_model(const std::filesystem::path& file, const importing::ImportOptions& options);

/// An input as the file describes it.
struct ModelInput {
  std::string name;
  std::vector<std::optional<std::int64_t>> sizes;  ///< those that are numbers
};

/// Returns the inputs of an ONNX file that are no initializers. Throws UserErrors [file_open], [import_file], and
/// [import_size] for an input without a shape.
std::vector<ModelInput> model_inputs(const std::filesystem::path& file);

}  // namespace lathe::onnx
