#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The values `from` and what they are made of, each once, in topological order. Where `follow(id)` is false the
/// operands of `id` are left out. Takes time for what it finds alone, however large the graph is and however deep.
template <class Follow>
std::vector<ValueId> ancestors(const Graph& graph, std::span<const ValueId> from, Follow&& follow) {
  // Operands come before who reads them: the last of those that are pending is read by none of the others.
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

}  // namespace lathe::ir
