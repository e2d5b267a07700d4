#include "passes/shard/held_bytes.h"

#include <algorithm>

#include "ir/ops/list.h"
#include "ir/tensor/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

Dim bytes_of(const Node& node) {
  return node.type.shape.numel() * Dim(static_cast<std::int64_t>(size_in_bytes(node.type.dtype)));
}

std::int64_t most_gathered(const Graph& graph) {
  std::vector<std::int32_t> source(graph.nodes.size(), -1), last(graph.nodes.size(), -1);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    const auto slot = static_cast<std::size_t>(id.index);
    if (node.op == &ops::all_gather) source[slot] = id.index;
    for (const ValueId operand : node.operands) {
      const std::int32_t of = source[static_cast<std::size_t>(operand.index)];
      if (of < 0) continue;
      if (node.op->as<View>()) source[slot] = of;
      last[static_cast<std::size_t>(of)] = id.index;
    }
  }
  std::vector<std::int64_t> freed(graph.nodes.size(), 0);
  std::int64_t now = 0, most = 0;
  for (const ValueId id : all_values(graph)) {
    const auto slot = static_cast<std::size_t>(id.index);
    if (source[slot] == id.index && last[slot] >= 0) {
      const std::int64_t bytes = bytes_of(graph[id]).value().value_or(0);
      now += bytes;
      freed[static_cast<std::size_t>(last[slot])] += bytes;
    }
    most = std::max(most, now);
    now -= freed[slot];
  }
  return most;
}

}  // namespace

HeldBytes held_bytes(const Graph& graph) {
  HeldBytes held;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    Dim& bytes = node.op == &ops::parameter ? held.parameters : node.op == &ops::state ? held.states : held.inputs;
    bytes = bytes + bytes_of(node);
  }
  held.gathered = most_gathered(graph);
  return held;
}

}  // namespace lathe::shard
