#include "passes/shard/held_bytes.h"

#include <algorithm>
#include <vector>

#include "ir/ops/primitives.h"
#include "ir/tensor/exchange_window.h"
#include "ir/tensor/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

Dim bytes_of(const Node& node) {
  return node.type.shape.numel() * Dim(static_cast<std::int64_t>(size_in_bytes(node.type.dtype)));
}

/// A gathered value and the nodes that read it, views aside.
struct Gathered {
  ir::ExchangeTimes times;
  int last;
};

std::vector<Gathered> gathered_values(const Graph& graph) {
  std::vector<Gathered> all;
  std::vector<int> source(graph.nodes.size(), -1), ready(graph.nodes.size(), 0);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    const auto slot = static_cast<std::size_t>(id.index);
    const bool gathers = node.op == &ops::all_gather;
    if (!gathers && !node.op->as<View>() && !node.op->as<Argument>()) ready[slot] = id.index + 1;
    for (const ValueId operand : node.operands) {
      const auto from = static_cast<std::size_t>(operand.index);
      if (gathers || node.op->as<View>()) ready[slot] = std::max(ready[slot], ready[from]);
      if (source[from] < 0 || gathers) continue;
      if (node.op->as<View>()) {
        source[slot] = source[from];
        continue;
      }
      Gathered& value = all[static_cast<std::size_t>(source[from])];
      value.times.done = std::min(value.times.done, id.index);
      value.last = id.index;
    }
    const auto bytes = gathers ? bytes_of(node).value() : std::nullopt;
    if (!bytes) continue;
    source[slot] = static_cast<int>(all.size());
    all.push_back({{.start = ready[slot], .done = graph.size(), .bytes = *bytes}, -1});
  }
  std::erase_if(all, [](const Gathered& value) { return value.last < 0; });
  return all;
}

std::int64_t most_gathered(const Graph& graph) {
  std::vector<Gathered> all = gathered_values(graph);
  std::vector<ir::ExchangeTimes> times;
  for (const Gathered& value : all) times.push_back(value.times);
  limit_prefetch(times);
  std::vector<std::int64_t> change(graph.nodes.size() + 1, 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    change[static_cast<std::size_t>(times[i].start)] += times[i].bytes;
    change[static_cast<std::size_t>(all[i].last) + 1] -= times[i].bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t more : change) most = std::max(most, now += more);
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
