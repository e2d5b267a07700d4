#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "ir/tensor/node_map.h"

namespace lathe::ir {

/// Returns the values `from` and their transitive operands, each once, in topological order. Does not visit the
/// operands of `id` if `follow(id)` is false. Linear (up to a log factor) in the values found, independent of graph
/// size and depth.
template <class Follow>
std::vector<ValueId> ancestors(const Graph& graph, std::span<const ValueId> from, Follow&& follow) {
  // Operands precede their users, so no other pending value reads the last one.
  std::set<ValueId> pending(from.begin(), from.end());
  std::vector<ValueId> found;
  while (!pending.empty()) {
    const ValueId id = *pending.rbegin();
    pending.erase(id);
    found.push_back(id);
    if (follow(id)) pending.insert(graph[id].operands.begin(), graph[id].operands.end());
  }
  std::reverse(found.begin(), found.end());
  return found;
}

template <class Follow>
std::vector<ValueId> ancestors(const Graph& graph, ValueId from, Follow&& follow) {
  return ancestors(graph, std::span<const ValueId>(&from, 1), follow);
}

/// Marks the transitive operands of the marked values. Linear in the size of the graph.
inline void mark_ancestors(const Graph& graph, NodeMap<bool>& marked) {
  for (const ValueId id : reversed_values(graph))
    if (marked[id])
      for (const ValueId operand : graph[id].operands) marked[operand] = true;
}

}  // namespace lathe::ir
