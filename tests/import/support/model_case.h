#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "models/import/import.h"

/// Folders of tests as the ONNX project has them: model.onnx, and test_data_set_0, .. with input_0.pb, .. and
/// output_0.pb, ...
namespace lathe::test {

/// The inputs and expected outputs of one run, by the model's names.
struct ModelRun {
  Tensors inputs, outputs;
  std::string first_input;  ///< usually the data
};

/// Returns all runs of a folder.
std::vector<ModelRun> model_runs(const std::filesystem::path& folder);

/// Runs an imported graph, interpreted or compiled.
Tensors run_imported(const importing::ImportedGraph& imported, const Tensors& inputs, bool is_compiled);

struct Tolerance {
  double relative, absolute;
};

/// Returns the first output or element that differs from the expected one, with both numbers; nothing if all are
/// near. `f32` is the tolerance of f32 and f64; those of 16-bit floats are wider.
std::optional<std::string> difference(const Tensors& results, const Tensors& expected, const Tolerance& f32);

}  // namespace lathe::test
