#include "passes/remat/kept_carries.h"

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/loop_views.h"

namespace lathe {

using namespace ir;

namespace {

/// Whether a value is in memory until the loop that starts at `reader` runs.
bool is_kept_until(const Graph& graph, ValueId value, ValueId reader) {
  const auto reads = [&](ValueId id) {
    return std::ranges::find(graph[id].operands, value) != graph[id].operands.end();
  };
  for (ValueId id = reader; id.index < graph.size(); ++id.index)
    if (reads(id)) return true;
  return std::ranges::find(graph.outputs, value, &Output::value) != graph.outputs.end();
}

}  // namespace

int stack_of_carry(const Graph& graph, const LoopPair& pair, int carry) {
  const Graph& body = loop_body(graph[pair.saver]).graph();
  const std::vector<ValueId> nodes = nodes_of_loop(graph, pair.saver);
  const ValueId state = body.arguments()[static_cast<std::size_t>(carry)];
  const std::size_t carries = body.updates.size();
  for (std::size_t output = 0; output < body.outputs.size(); ++output) {
    const ValueId stack = nodes[carries + output];
    const auto result = static_cast<int>(carries + output);
    if (!stack.valid() || std::ranges::find(pair.again, result) != pair.again.end()) continue;
    ValueId value = body.outputs[output].value;
    while (body[value].op == &ops::contiguous) value = body[value].operands[0];
    if (value == state && is_kept_until(graph, stack, pair.reader)) return result;
  }
  return -1;
}

std::vector<bool> stored_carries(const Graph& graph, const LoopPair& pair) {
  std::vector<bool> stored;
  for (int c = 0; c < carry_count(graph[pair.saver]); ++c) stored.push_back(stack_of_carry(graph, pair, c) < 0);
  return stored;
}

}  // namespace lathe
