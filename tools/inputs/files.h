#pragma once

#include <CLI/App.hpp>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dim.h"
#include "ir/tensor/graph.h"
#include "runtime/parameters/parameters.h"

namespace lathe::tools {

/// Returns the text of a file, or of standard input for "-". Throws UserError [file_open], [file_read], and
/// [file_too_large] above 256 MiB.
std::string read_text(const std::string& path);

/// Writes a file atomically; "-" is standard output. Throws UserError [file_write].
void write_text(const std::string& path, std::string_view text);

/// How a graph is read from its file.
struct GraphSource {
  std::vector<std::string> ops;    ///< shared libraries of custom ops, for IR text
  std::vector<std::string> sizes;  ///< "height=224": numbers in place of named dims
};

/// Adds --fix-dim.
CLI::Option* add_fix_dim_option(CLI::App& command, std::vector<std::string>& sizes);
/// Parses the values of --fix-dim. Throws UserError [dim_option].
DimBindings fixed_dims(const std::vector<std::string>& sizes);
/// Adds --ops and --fix-dim. Returns both.
std::array<CLI::Option*, 2> add_source_options(CLI::App& command, GraphSource& source);

/// Reads a graph from IR text, imports that of an ONNX or a .pt2 file, or builds that of a Hugging Face directory:
/// input_ids -> logits, in f32. Errors name the file as the user specified it. Throws UserErrors: [dim_option] for a
/// size that is no number or belongs to no dim, [usage] for custom ops of a file other than IR text, and those of
/// load_ops(), parse_graph() and import_graph().
ir::Graph load_graph(const std::string& path, const GraphSource& source = {});

/// Returns whether a path has the weights of its graph too: an ONNX or a .pt2 file, or a model directory.
bool has_weights(const std::string& path);

/// Returns these weights, mapped from the files.
Parameters weights_of(const std::string& path);

struct LoadedModel {
  ir::Graph graph;
  Parameters weights;  ///< mapped from the files; empty for IR text
};

/// Returns the graph of load_graph() with the weights of weights_of(). Imports a file once for both.
LoadedModel load_model(const std::string& path, const GraphSource& source = {});

}  // namespace lathe::tools
