#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "frontend/graph.h"
#include "runtime/parameters/parameters.h"

namespace lathe::importing {

/// A graph from a file of another system. Inputs, parameters and outputs have the names in the file. Sizes with one
/// name in the file are one dim. Each op has the location of its node: "model.onnx:/layers.0/attn/MatMul".
struct ImportedGraph {
  Graph graph;
  std::map<std::string, Tensor> outputs;  ///< the outputs of the graph by name, such as to attach a loss
  Parameters parameters;                  ///< the values of the parameters and states, mapped from the file
};

/// An input with rows of the runs before, and the output that joins them with new rows along a dim.
struct CachedInput {
  std::string output;
  int dim = 2;
};

struct ImportOptions {
  /// Values of inputs that are fixed at import. Such an input becomes a constant, so sizes and axes may follow from
  /// it.
  Tensors inputs = {};
  /// Numbers that take the place of named sizes of inputs, such as {{"height", 224}}. The graph runs at these sizes
  /// only, and sizes that must be known at import may follow from them.
  DimBindings sizes = {};
  /// ONNX: shapes of inputs, which replace the shapes in the file. Sizes that are numbers in the file stay.
  std::map<std::string, Shape> shapes = {};
  /// ONNX: inputs such as past keys and values, by name, that become states "NAME_cache" with `capacity` rows. A run
  /// writes the new rows in place, after as many as the size of the input's dim. Its output is not declared.
  std::map<std::string, CachedInput> caches = {};
  Dim capacity = Dim("capacity");
  /// ONNX: name of an input i64 [batch] that the graph gets in addition: the row of the batch whose cached rows each
  /// sequence continues, such as for beams of a search. Empty: each continues its own. The first dim of all caches is
  /// the batch.
  std::string parents = {};
  /// ONNX: inputs that become states of their names, which runs read and do not change.
  std::set<std::string> states = {};
  /// Whether the outputs of the file become outputs of the graph. They are in ImportedGraph::outputs anyway.
  bool declares_outputs = true;
};

/// Returns a graph of Lathe, such as one from ir::parse_graph(), as if it were imported. It has no values of
/// parameters.
ImportedGraph as_imported(ir::Graph graph);

/// Returns whether a path names a file that import_graph() reads: it ends with ".onnx" or ".pt2".
bool is_importable(const std::filesystem::path& path);

/// Imports a file. ONNX: opsets 7 to 27 of ai.onnx with the supported ops, functions of the model, and external data.
/// Float tensors become parameters, large tensors of integers and bools become states, all others constants. PyTorch:
/// a program of torch.export in a .pt2 file, of a tested version, with the supported ops. Its parameters are
/// parameters, which are frozen unless they require gradients; its buffers are states, which runs update if the
/// program does. Throws UserErrors: [argument_unknown] for an input of the options that the model does not have,
/// [argument_dtype] and [argument_shape] for one of another type; [file_open]; [import_file] for a damaged file;
/// [dim_unknown] for a size that no input has; [import_unsupported], which lists all ops, opsets, attributes and
/// arguments that are not supported, with their nodes; [import_attribute], [import_operand], [import_dtype],
/// [import_external]; [import_size] for a size that depends on values of a run; and those of the ops that are built,
/// at their nodes.
ImportedGraph import_graph(const std::filesystem::path& file, const ImportOptions& options = {});

}  // namespace lathe::importing
