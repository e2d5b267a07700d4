#include "passes/transforms/evaluation.h"

#include <algorithm>
#include <set>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
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
  std::vector<bool> live(graph.nodes.size());
  const auto mark = [&](ValueId id) { live[static_cast<std::size_t>(id.index)] = true; };
  for (const Output& output : graph.outputs) mark(output.value);
  for (const Update& update : graph.updates)
    if (update.state != state) mark(update.value);
  for (std::size_t i = graph.nodes.size(); i-- > 0;)
    if (live[i])
      for (const ValueId operand : graph.nodes[i].operands) mark(operand);
  return !live[static_cast<std::size_t>(state.index)];
}

/// Returns the graph without these arguments and their updates.
Graph without(Graph graph, const std::set<ValueId>& dropped) {
  std::erase_if(graph.updates, [&](const Update& update) { return dropped.contains(update.state); });
  const std::vector<bool> needed = needed_nodes(graph);
  GraphBuilder builder(graph.name);
  builder.add_checks(graph.checks);
  Rebuilder to(builder, graph);
  for (const ValueId id : all_values(graph))
    if (needed[static_cast<std::size_t>(id.index)] && !dropped.contains(id)) to.set(id, to.copy(graph[id]));
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
