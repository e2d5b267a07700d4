#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/node_map.h"
#include "models/export/onnx/dim_values.h"
#include "models/export/onnx/model_builder.h"
#include "models/export/onnx/nodes/loop_exporter.h"

namespace lathe::onnx {

/// Adds the nodes of a graph, or of the body of a loop, to a model.
class NodeExporter {
 public:
  /// `arguments` are the names of the graph's arguments.
  NodeExporter(const ir::Graph& graph, const std::vector<Text>& arguments, const ExportTarget& to);

  /// Names the result of a node, if it becomes a result of a new node. Otherwise it has the name in the graph, or a
  /// free one. The first of several names for a value is used. The name is reserved.
  void wish(ir::ValueId id, Text name) { wishes_.try_emplace(id.index, name); }
  void add_nodes();
  /// Returns the name of a value.
  Text operator[](ir::ValueId id) const { return values_[id]; }

 private:
  void add_node(ir::ValueId id);

  const ir::Graph& graph_;
  ExportTarget to_;
  LoopExporter loops_;
  ir::NodeMap<Text> values_;
  std::map<std::int32_t, Text> wishes_;  ///< by node
};

}  // namespace lathe::onnx
