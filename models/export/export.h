#pragma once

#include <cstdint>
#include <filesystem>

#include "ir/tensor/graph.h"
#include "runtime/parameters/parameters.h"

namespace lathe::exporting {

struct OnnxOptions {
  std::int64_t opset = 18;  ///< 18 to 23; from 23 on, attention and RMS norms are ops of the format
  /// Largest size of the model's file in bytes. The values of a larger model are in a file next to it, with ".data"
  /// after its name. The format allows up to 2 GiB; 0 always writes two files.
  std::uint64_t most_bytes = (std::uint64_t{1} << 31) - 1;
};

/// Writes a graph as an ONNX file, which ONNX Runtime runs and importing::import_graph() reads. Inputs, outputs,
/// parameters and named dims keep their names. Parameters and states become initializers with the values in
/// `parameters`. A complex input or output becomes real, with the two parts of its elements as its last dim.
///
/// The file is complete or not there: it is renamed when it is written. Throws UserErrors: [export_unsupported],
/// which lists all ops that ONNX cannot express and all states that are updated in place, with their lines;
/// [export_values] for parameters and states without values, or with values of another type; [export_size] for a dim
/// that does not follow from the size of an input; [export_name] for an output with the name of an argument;
/// [export_opset]; [export_large]; [file_write].
void write_onnx(const ir::Graph& graph, const Parameters& parameters, const std::filesystem::path& file,
                const OnnxOptions& options = {});

}  // namespace lathe::exporting
