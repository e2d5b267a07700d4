#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The values `from` and what they are made of, each once, in topological order. Where `follow(id)` is false the
/// operands of `id` are left out. Takes time for what it finds alone, however large the graph is and however deep.
template <class Follow>
std::vector<ValueId> ancestors(const Graph& graph, std::span<const ValueId> from, Follow&& follow) {
  // A heap gives the last first: all that read a value have been seen when it comes, one after the other.
  std::vector<ValueId> pending(from.begin(), from.end()), found;
  std::make_heap(pending.begin(), pending.end());
  while (!pending.empty()) {
    std::pop_heap(pending.begin(), pending.end());
    const ValueId id = pending.back();
    pending.pop_back();
    if (!found.empty() && found.back() == id) continue;
    found.push_back(id);
    if (!follow(id)) continue;
    for (const ValueId operand : graph[id].operands) {
      pending.push_back(operand);
      std::push_heap(pending.begin(), pending.end());
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

template <class Follow>
std::vector<ValueId> ancestors(const Graph& graph, ValueId from, Follow&& follow) {
  return ancestors(graph, std::span<const ValueId>(&from, 1), follow);
}

}  // namespace lathe::ir
