#include "models/export/onnx/nodes/node_exporter.h"

#include <algorithm>

#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "models/export/onnx/nodes/export_table.h"

namespace lathe::onnx {

NodeExporter::NodeExporter(const ir::Graph& graph, const std::vector<Text>& arguments, const ExportTarget& to)
    : graph_(graph), to_(to), loops_(to), values_(graph) {
  const std::vector<ir::ValueId> ids = graph.arguments();
  for (std::size_t i = 0; i < ids.size(); ++i) values_[ids[i]] = arguments[i];
}

void NodeExporter::add_nodes() {
  for (const ir::ValueId id : ir::all_values(graph_))
    if (!graph_[id].op->as<ir::Argument>()) add_node(id);
}

void NodeExporter::add_node(ir::ValueId id) {
  const ir::Node& node = graph_[id];
  ModelBuilder& model = to_.model;
  std::vector<Text> operands;
  for (const ir::ValueId operand : node.operands) operands.push_back(values_[operand]);
  model.set_module(node.loc.scope());
  const std::size_t before = model.nodes().size();
  Text& value = values_[id];
  value = find_export(*node.op)->emit(OpExport(graph_, id, std::move(operands), model, to_.dims, loops_, to_.opset));
  // A result of a new node has no readers yet, so that it can be renamed. Constants are shared.
  const bool is_new = model.nodes().size() > before && model.nodes().back().op != "Constant" &&
                      model.nodes().back().outputs.back() == value;
  const auto wish = wishes_.find(id.index);
  if ((!is_new && !ir::is_loop(node)) || (wish == wishes_.end() && node.name.empty())) return;
  const Text name = wish != wishes_.end() ? wish->second : model.free_name(node.name);
  model.rename(value, name);
  value = name;
}

}  // namespace lathe::onnx
