#include "passes/transforms/evaluation.h"

#include <algorithm>
#include <set>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/ancestors.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

/// Returns the states that dropout draws from.
std::set<std::string> drawn_from(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes)
    if (node.op == &ops::dropout && graph[node.operands[1]].op == &ops::state)
      names.insert(graph[node.operands[1]].name);
  return names;
}

/// Whether only the state's own update uses it.
bool is_unused(const Graph& graph, ValueId state) {
  NodeMap<bool> live(graph);
  for (const Output& output : graph.outputs) live[output.value] = true;
  for (const Update& update : graph.updates)
    if (update.state != state) live[update.value] = true;
  mark_ancestors(graph, live);
  return !live[state];
}

/// Returns the graph without these arguments and their updates.
Graph without(Graph graph, const std::set<ValueId>& dropped) {
  std::erase_if(graph.updates, [&](const Update& update) { return dropped.contains(update.state); });
  const NodeMap<bool> needed = needed_nodes(graph);
  GraphBuilder builder(graph.name);
  builder.add_checks(graph.checks);
  Rebuilder to(builder, graph);
  for (const ValueId id : all_values(graph))
    if (needed[id] && !dropped.contains(id)) to.set(id, to.copy(graph[id]));
  to.close();
  return builder.finish();
}

}  // namespace

Graph evaluation(const Graph& graph) {
  const std::set<std::string> random = drawn_from(graph);
  if (random.empty()) return graph;
  const Graph plain = rebuild(graph, [](GraphBuilder&, const Node& node, std::span<const Value> operands) {
    return node.op == &ops::dropout ? std::optional(operands[0]) : std::nullopt;
  });
  std::set<ValueId> unused;
  for (const ValueId id : plain.arguments())
    if (random.contains(plain[id].name) && is_unused(plain, id)) unused.insert(id);
  return without(plain, unused);
}

}  // namespace lathe::ir
