#include "passes/fusion/prepare/store_transposed.h"

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/affine.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::ptrdiff_t least_readers = 4;  // with fewer, the copy may take longer than it saves

bool reads_elements(const Node& node) { return node.op->as<Elementwise>() || node.op->as<Reduce>(); }

/// Whether elements are adjacent along another dim than the last one.
bool is_transposed(const Graph& graph, ValueId id) {
  const Node& node = graph[id];
  if (!is_alias(node)) return false;
  int last = node.type.rank() - 1;
  while (last >= 0 && node.type.shape[last].is(1)) --last;
  if (last < 0 || node.type.strides[last].is(1) || node.type.strides[last].is(0)) return false;
  for (int d = 0; d < last; ++d)
    if (node.type.strides[d].is(1) && !node.type.shape[d].is(1)) return true;
  return false;
}

/// Returns the values to store; an empty map if there are none.
NodeMap<bool> stored_values(const Graph& graph) {
  const Users users(graph);
  const auto reads = [&](ValueId reader) { return reads_elements(graph[reader]); };
  NodeMap<bool> found(graph, false);
  bool any = false;
  for (const ValueId id : all_values(graph)) {
    found[id] = is_transposed(graph, id) && std::ranges::count_if(users[id], reads) >= least_readers;
    any = any || found[id];
  }
  return any ? found : NodeMap<bool>{};
}

}  // namespace

Graph store_transposed(Graph graph) {
  const NodeMap<bool> stored = stored_values(graph);
  if (stored.empty()) return graph;
  NodeMap<std::optional<Value>> copies(graph);
  return rebuild(
      graph, [&](GraphBuilder& b, const Node& node, std::span<const Value> operands) -> std::optional<Value> {
        const bool reads =
            reads_elements(node) && std::ranges::any_of(node.operands, [&](ValueId id) { return bool(stored[id]); });
        if (!reads) return std::nullopt;
        std::vector<Value> now(operands.begin(), operands.end());
        for (std::size_t i = 0; i < now.size(); ++i) {
          if (!stored[node.operands[i]]) continue;
          std::optional<Value>& copy = copies[node.operands[i]];
          if (!copy) copy = b.add(ops::contiguous, {now[i]});
          now[i] = *copy;
        }
        return b.add(*node.op, now, node.attrs);
      });
}

}  // namespace lathe
