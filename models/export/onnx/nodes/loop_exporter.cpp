#include "models/export/onnx/nodes/loop_exporter.h"

#include <algorithm>
#include <set>

#include "ir/tensor/loop_views.h"
#include "models/export/onnx/nodes/node_exporter.h"
#include "models/export/onnx/nodes/op_export.h"

namespace lathe::onnx {

namespace {

/// Closes the body of a loop. Its outputs are new values of the body: copies of values that are not.
void close_body(GraphProto& graph, const std::vector<std::pair<Text, ir::TensorType>>& results, ModelBuilder& to) {
  std::set<Text> own;
  for (const NodeProto& node : to.nodes()) own.insert(node.outputs.begin(), node.outputs.end());
  for (const auto& [result, type] : results) {
    Text name = result;
    if (own.erase(name) == 0) {
      name = to.free_name("output");
      to.add_named("Identity", {result}, name);
    }
    graph.outputs.push_back(to.described(name, type));
  }
  graph.nodes = to.close_body();
}

}  // namespace

Text LoopExporter::result(const OpExport& loop) {
  const auto index = static_cast<std::size_t>(ir::loop_result(loop.node()));
  for (const auto& [id, results] : loops_)
    if (ir::is_same_loop(loop.graph()[id], loop.node())) return results[index];
  loops_.emplace_back(loop.id(), add(loop));
  return loops_.back().second[index];
}

/// A loop without sequences counts its iterations. Values that do not change are those around the body.
std::vector<Text> LoopExporter::add(const OpExport& loop) {
  const ir::Node& node = loop.node();
  const ir::Graph& body = ir::loop_body(node).graph();
  ModelBuilder& model = to_.model;
  const auto carries = static_cast<std::size_t>(ir::carry_count(node));
  const auto own = carries + static_cast<std::size_t>(ir::sequence_count(node));
  std::vector<Text> inputs(loop.operands().begin(), loop.operands().begin() + static_cast<std::ptrdiff_t>(own));
  GraphProto graph;
  graph.name = model.keep(body.name);
  std::vector<Text> arguments;
  for (const ir::ValueId id : body.arguments()) {
    const bool is_own = arguments.size() < own;
    const std::string& name = body[id].name;
    arguments.push_back(is_own ? model.free_name(name) : loop.operands()[arguments.size()]);
    if (is_own) graph.inputs.push_back(model.described(arguments.back(), body[id].type));
  }
  if (own == carries) {
    inputs.push_back(loop.range(ir::loop_trips(node)));
    graph.inputs.push_back(model.described(model.free_name("index"), ir::TensorType::contiguous(i64, {})));
  }
  const auto sequences = static_cast<std::int64_t>(inputs.size() - carries);
  model.open_body();
  NodeExporter nodes(body, arguments, to_);
  nodes.add_nodes();
  std::vector<std::pair<Text, ir::TensorType>> results;
  const auto add_result = [&](ir::ValueId id) { results.emplace_back(nodes[id], body[id].type); };
  for (int i = 0; i < static_cast<int>(carries); ++i) add_result(ir::next_of(body, i));
  for (const ir::Output& output : body.outputs) add_result(output.value);
  close_body(graph, results, model);
  Attributes attributes{graph_attribute("body", std::move(graph)), integer_attribute("num_scan_inputs", sequences)};
  if (ir::loop_reverse(node)) {
    attributes.push_back(integers_attribute("scan_input_directions", Ints(static_cast<std::size_t>(sequences), 1)));
    if (!body.outputs.empty())
      attributes.push_back(integers_attribute("scan_output_directions", Ints(body.outputs.size(), 1)));
  }
  model.set_module(node.loc.scope());
  return model.add_new("Scan", std::move(inputs), std::move(attributes), results.size());
}

}  // namespace lathe::onnx
