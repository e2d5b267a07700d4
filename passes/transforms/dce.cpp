#include "passes/transforms/dce.h"

#include "ir/tensor/op/op.h"

namespace lathe::ir {

std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  const auto mark = [&](ValueId id) { live[static_cast<std::size_t>(id.index)] = true; };
  for (const ValueId id : graph.results()) mark(id);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op->as<Argument>()) live[i] = true;  // including states
    if (!live[i]) continue;
    for (const ValueId operand : node.operands) mark(operand);
  }
  return live;
}

Graph dce(Graph graph) {
  const auto needed = needed_nodes(graph);
  std::vector<ValueId> now(graph.nodes.size());
  ValueId next{0};
  const auto move = [&](ValueId& id) { id = now[static_cast<std::size_t>(id.index)]; };
  for (const ValueId id : all_values(graph)) {
    Node& node = graph[id];
    if (!needed[static_cast<std::size_t>(id.index)]) continue;
    for (ValueId& operand : node.operands) move(operand);
    now[static_cast<std::size_t>(id.index)] = next;
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
