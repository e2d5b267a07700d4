#pragma once

#include <cstdint>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"
#include "models/export/onnx/model_builder.h"
#include "runtime/parameters/parameters.h"

namespace lathe::onnx {

class NodeExporter;

/// A graph as a model of the format. The model refers to texts of this object and to the values in `parameters`.
class GraphExporter {
 public:
  /// Throws the UserErrors of exporting::write_onnx(), except those of files.
  GraphExporter(const ir::Graph& graph, const Parameters& parameters, std::int64_t opset);

  ModelProto model() const;

 private:
  void add_argument(const ir::Node& node, bool is_used);
  void add_outputs(const NodeExporter& nodes);

  std::int64_t opset_;
  Parameters parameters_;
  ir::Graph graph_;
  ModelBuilder to_;
};

}  // namespace lathe::onnx
