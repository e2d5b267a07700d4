#include "passes/transforms/dce.h"

#include "ir/tensor/analysis/ancestors.h"

namespace lathe::ir {

NodeMap<bool> needed_nodes(const Graph& graph) {
  NodeMap<bool> live(graph);
  for (const ValueId id : graph.results()) live[id] = true;
  for (const ValueId id : graph.arguments()) live[id] = true;  // including states
  mark_ancestors(graph, live);
  return live;
}

Graph dce(Graph graph) {
  const auto needed = needed_nodes(graph);
  NodeMap<ValueId> now(graph);
  ValueId next{0};
  const auto move = [&](ValueId& id) { id = now[id]; };
  for (const ValueId id : all_values(graph)) {
    Node& node = graph[id];
    if (!needed[id]) continue;
    for (ValueId& operand : node.operands) move(operand);
    now[id] = next;
    if (next != id) graph[next] = std::move(node);
    ++next.index;
  }
  graph.nodes.shrink(static_cast<std::size_t>(next.index));
  for (Output& output : graph.outputs) move(output.value);
  for (Update& update : graph.updates) {
    move(update.state);
    move(update.value);
  }
  return graph;
}

}  // namespace lathe::ir
