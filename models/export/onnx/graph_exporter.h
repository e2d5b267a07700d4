#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"
#include "models/export/onnx/dim_values.h"
#include "models/export/onnx/model_builder.h"
#include "runtime/parameters/parameters.h"

namespace lathe::onnx {

/// A graph as a model of the format. The model refers to texts of this object and to the values in `parameters`.
class GraphExporter {
 public:
  /// Throws the UserErrors of exporting::write_onnx(), except those of files.
  GraphExporter(const ir::Graph& graph, const Parameters& parameters, std::int64_t opset);

  ModelProto model() const;

 private:
  void add_argument(const ir::Node& node, bool is_used);
  void add_node(ir::ValueId id, DimValues& dims);
  void add_outputs();
  ValueProto described(std::string_view name, const ir::TensorType& type);
  std::pair<Text, bool> name_for(ir::ValueId id) const;

  std::int64_t opset_;
  Parameters parameters_;
  ir::Graph graph_;
  ModelBuilder to_;
  std::vector<Text> values_;  ///< names by node
};

}  // namespace lathe::onnx
