#include "passes/dce.h"

#include "ir/tensor/op.h"

namespace lathe::ir {

namespace {

/// Which nodes an output or an update needs, by position.
std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  const auto mark = [&](ValueId id) { live[static_cast<std::size_t>(id.index)] = true; };
  for (const Output& output : graph.outputs) mark(output.value);
  for (const Update& update : graph.updates) {
    mark(update.state);
    mark(update.value);
  }
  for (std::size_t i = graph.nodes.size(); i-- > 0;)
    if (live[i])
      for (const ValueId operand : graph.nodes[i].operands) mark(operand);
  return live;
}

}  // namespace

Graph dce(Graph graph) {
  const auto live = live_nodes(graph);
  std::vector<ValueId> now(graph.nodes.size());
  ValueId next{0};
  const auto move = [&](ValueId& id) { id = now[static_cast<std::size_t>(id.index)]; };
  for (const ValueId id : all_values(graph)) {
    Node& node = graph[id];
    if (!live[static_cast<std::size_t>(id.index)] && !node.op->as<Argument>()) continue;
    for (ValueId& operand : node.operands) move(operand);
    now[static_cast<std::size_t>(id.index)] = next;
    if (next != id) graph[next] = std::move(node);
    ++next.index;
  }
  graph.nodes.resize(static_cast<std::size_t>(next.index));
  for (Output& output : graph.outputs) move(output.value);
  for (Update& update : graph.updates) {
    move(update.state);
    move(update.value);
  }
  return graph;
}

}  // namespace lathe::ir
