#include "passes/transforms/loops/simplify_loops.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/loop_parts.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/loops/merge_bodies.h"
#include "passes/transforms/loops/reduce_body.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

/// The nodes of one or more loops that become one, by the result of that one.
struct LoopGroup {
  Body body;
  std::vector<std::pair<ValueId, int>> nodes;  ///< in order
};

bool has_same_operands(const Node& a, const Node& b) {
  return a.operands == b.operands && loop_reverse(a) == loop_reverse(b) && sequence_count(a) == sequence_count(b) &&
         carry_count(a) == carry_count(b) && loop_trips(a) == loop_trips(b);
}

/// Adds a node to the group if its loop can become the group's.
bool join(LoopGroup& group, const Graph& graph, ValueId id) {
  const Node &node = graph[id], &first = graph[group.nodes.front().first];
  if (!has_same_operands(first, node)) return false;
  const int carries = carry_count(node), result = loop_result(node);
  if (loop_body(node).is_same(loop_body(first))) {  // merged bodies keep the outputs of the first
    group.nodes.emplace_back(id, result);
    return true;
  }
  std::optional<MergedBodies> merged = merge_bodies(group.body, loop_body(node));
  if (!merged) return false;
  group.body = std::move(merged->body);
  group.nodes.emplace_back(
      id, result < carries ? result : carries + merged->second[static_cast<std::size_t>(result - carries)]);
  return true;
}

std::vector<LoopGroup> groups_of(const Graph& graph) {
  const NodeMap<bool> needed = needed_nodes(graph);
  std::vector<LoopGroup> groups;
  for (const ValueId id : all_values(graph)) {
    if (!is_loop(graph[id]) || !needed[id]) continue;
    if (std::ranges::any_of(groups, [&](LoopGroup& group) { return join(group, graph, id); })) continue;
    groups.push_back({loop_body(graph[id]), {{id, loop_result(graph[id])}}});
  }
  return groups;
}

/// Gives different bodies of a graph different names, as their text needs.
class BodyNames {
 public:
  Body named(const Body& body) {
    Graph graph = body.graph();
    const std::string name = graph.name;
    for (int number = 2;; ++number) {
      const Body candidate{Graph(graph)};
      const auto same_name = [&](const Body& other) { return other.graph().name == graph.name; };
      const auto known = std::ranges::find_if(bodies_, same_name);
      if (known == bodies_.end()) return bodies_.emplace_back(candidate);
      if (known->looks_like(candidate)) return *known;
      graph.name = fmt::format("{}.{}", name, number);
    }
  }

 private:
  std::vector<Body> bodies_;
};

/// Adds the simplified loop and maps the nodes of the group to its results.
void add_loop(Rebuilder& to, const LoopGroup& group, BodyNames& names) {
  const Node& first = to.from()[group.nodes.front().first];
  LoopParts parts = loop_parts(first, to.operands(first));
  parts.body = group.body;
  std::vector<bool> used(group.body.graph().updates.size() + group.body.graph().outputs.size(), false);
  for (const auto& [id, result] : group.nodes) used[static_cast<std::size_t>(result)] = true;
  const GraphBuilder::At at(to.builder(), first.loc);
  ReducedLoop reduced = reduce_body(to.builder(), std::move(parts), used);
  reduced.parts.body = names.named(reduced.parts.body);
  const std::vector<Value> results = loop(to.builder(), reduced.parts);
  for (const auto& [id, result] : group.nodes) {
    const std::optional<Value>& fixed = reduced.fixed[static_cast<std::size_t>(result)];
    to.set(id, fixed ? *fixed : results[static_cast<std::size_t>(reduced.result[static_cast<std::size_t>(result)])]);
  }
}

Graph simplify_once(const Graph& graph) {
  const std::vector<LoopGroup> groups = groups_of(graph);
  GraphBuilder builder(graph.name);
  builder.add_checks(graph.checks);
  Rebuilder to(builder, graph);
  const NodeMap<bool> needed = needed_nodes(graph);
  BodyNames names;
  for (const ValueId id : all_values(graph)) {
    if (!needed[id] || to.has(id)) continue;
    if (!is_loop(graph[id])) {
      to.set(id, to.copy(graph[id]));
      continue;
    }
    const auto group = std::ranges::find(groups, id, [](const LoopGroup& g) { return g.nodes.front().first; });
    LATHE_ASSERT(group != groups.end());
    add_loop(to, *group, names);
  }
  to.close();
  return dce(builder.finish());
}

}  // namespace

Graph simplify_loops(Graph graph) {
  if (std::ranges::none_of(graph.nodes, is_loop)) return graph;
  // Without a loop, an operand of an outer loop may no longer be needed.
  for (;;) {
    Graph simpler = simplify_once(graph);
    if (simpler.size() == graph.size()) return simpler;
    graph = std::move(simpler);
  }
}

}  // namespace lathe::ir
