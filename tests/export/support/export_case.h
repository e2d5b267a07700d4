#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "ir/tensor/op/op.h"
#include "models/export/export.h"
#include "models/import/import.h"

/// Graphs that are exported, and imported again.
namespace lathe::test {

/// Returns the path of a file in a new folder for tests.
std::filesystem::path new_file(const std::string& name);

/// Writes a graph as an ONNX file in a new folder for tests. Returns its path.
std::filesystem::path exported(const ir::Graph& graph, const Parameters& parameters = {},
                               const exporting::OnnxOptions& options = {});

/// The same for a graph without parameters. Does not wait until the file is on the disk, for tests of many files.
std::filesystem::path quickly_exported(const ir::Graph& graph, std::int64_t opset);

/// Returns the values of a graph's parameters and states, and those of its inputs.
std::pair<Parameters, Tensors> divided(const ir::Graph& graph, const Tensors& arguments);

/// Returns tensors with two reals for each complex element, in a new last dim.
Tensors as_reals(const Tensors& tensors);

/// Returns the arguments of an imported graph: the inputs that it has, and its parameters.
Tensors arguments_of(const ir::Graph& imported, const Parameters& parameters, const Tensors& inputs);

/// A sample of an op's record as a graph, with its arguments and the outputs that the interpreter computes.
struct ExportSample {
  const ir::Op* op;
  std::string description;
  ir::Graph graph;
  Tensors arguments;  ///< of the exported graph: complex ones as pairs of reals
  Tensors outputs;
};

/// Calls f for the samples of all ops: as they are, with f32 for f64, and with symbolic dims where the op allows
/// them.
void for_each_export_sample(const std::function<void(const ExportSample&)>& f);

}  // namespace lathe::test
