#pragma once

#include <string>
#include <string_view>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op_set.h"
#include "runtime/parameters/parameters.h"

namespace lathe::tools {

/// Returns the text of a file, or of standard input for "-". Throws UserError [file_open], [file_read], and
/// [file_too_large] above 256 MiB.
std::string read_text(const std::string& path);

/// Writes a file atomically; "-" is standard output. Throws UserError [file_write].
void write_text(const std::string& path, std::string_view text);

/// Reads a graph from IR text, which may use the ops of `ops`, imports that of an ONNX or a .pt2 file, or builds that
/// of a Hugging Face directory: input_ids -> logits, in f32. Errors name the file as the user specified it.
ir::Graph load_graph(const std::string& path, const ir::OpSet& ops = {});

/// Returns whether a path has the weights of its graph too: an ONNX or a .pt2 file, or a model directory.
bool has_weights(const std::string& path);

/// Returns these weights, mapped from the files.
Parameters weights_of(const std::string& path);

struct LoadedModel {
  ir::Graph graph;
  Parameters weights;  ///< mapped from the files; empty for IR text
};

/// Returns the graph of load_graph() with the weights of weights_of(). Imports a file once for both.
LoadedModel load_model(const std::string& path, const ir::OpSet& ops = {});

}  // namespace lathe::tools
