#include "passes/shard/predict/held_bytes.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/mesh/collective_window.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

Dim bytes_of(const Node& node) {
  return node.type.shape.numel() * Dim(static_cast<std::int64_t>(size_in_bytes(node.type.dtype)));
}

/// A gathered value and the nodes that read it, also through views.
struct Gathered {
  ValueId id;
  ir::CollectiveTimes times;
};

std::vector<Gathered> gathered_values(const Graph& graph) {
  std::vector<Gathered> all;
  NodeMap<int> source(graph, -1), ready(graph);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    const bool gathers = node.op == &ops::all_gather;
    if (!gathers && !node.op->as<View>() && !node.op->as<Argument>()) ready[id] = id.index + 1;
    for (const ValueId operand : node.operands) {
      if (gathers || node.op->as<View>()) ready[id] = std::max(ready[id], ready[operand]);
      if (source[operand] < 0 || gathers) continue;
      if (node.op->as<View>()) {
        source[id] = source[operand];
        continue;
      }
      Gathered& value = all[source[operand]];
      value.times.done = std::min(value.times.done, id.index);
      value.times.last = id.index;
    }
    const auto bytes = gathers ? bytes_of(node).value() : std::nullopt;
    if (!bytes) continue;
    source[id] = static_cast<int>(all.size());
    all.push_back({id, {.start = ready[id], .done = graph.size(), .bytes = *bytes, .last = -1}});
  }
  std::erase_if(all, [](const Gathered& value) { return value.times.last < 0; });
  return all;
}

/// Returns the first argument that a value depends on.
std::string argument_of(const Graph& graph, ValueId id) {
  while (!graph[id].op->as<Argument>() && !graph[id].operands.empty()) id = graph[id].operands[0];
  return graph[id].name;
}

/// Returns the gathered values at the node where they need the most memory, including those that are gathered ahead.
std::vector<GatheredBytes> most_gathered(const Graph& graph) {
  std::vector<Gathered> all = gathered_values(graph);
  std::vector<ir::CollectiveTimes> times;
  for (const Gathered& value : all) times.push_back(value.times);
  limit_prefetch(times);
  std::vector<std::int64_t> change(graph.nodes.size() + 1, 0);
  for (const ir::CollectiveTimes& each : times) {
    change[each.start] += each.bytes;
    change[static_cast<std::size_t>(each.last) + 1] -= each.bytes;
  }
  std::int64_t now = 0, most = 0;
  int position = 0;
  for (std::size_t i = 0; i < change.size(); ++i)
    if (now += change[i]; now > most) {
      most = now;
      position = static_cast<int>(i);
    }
  std::vector<GatheredBytes> held;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (times[i].start <= position && position <= times[i].last)
      held.push_back({argument_of(graph, all[i].id), times[i].bytes, position < times[i].done});
  std::ranges::stable_sort(held, std::greater<>(), &GatheredBytes::bytes);
  return held;
}

}  // namespace

HeldBytes held_bytes(const Graph& graph) {
  HeldBytes held;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    Dim& bytes = node.op == &ops::parameter ? held.parameters : node.op == &ops::state ? held.states : held.inputs;
    bytes = bytes + bytes_of(node);
  }
  held.most_gathered = most_gathered(graph);
  for (const GatheredBytes& value : held.most_gathered) held.gathered += value.bytes;
  return held;
}

}  // namespace lathe::shard
