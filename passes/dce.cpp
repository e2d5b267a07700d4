#include "passes/dce.h"

#include "ir/tensor/op.h"
#include "passes/rebuild.h"

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

Graph dce(const Graph& graph) {
  const auto live = live_nodes(graph);
  GraphBuilder builder(graph.name);
  Rebuilder to(builder, graph);
  for (const ValueId id : all_values(graph))
    if (live[static_cast<std::size_t>(id.index)] || graph[id].op->as<Argument>()) to.set(id, to.copy(graph[id]));
  to.close();
  return builder.finish();
}

}  // namespace lathe::ir
