#include "ir/ops/loop_parts.h"

#include <cstdint>

#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

LoopParts loop_parts(const Node& node, std::span<const Value> operands) {
  const auto carries = operands.subspan(0, static_cast<std::size_t>(carry_count(node)));
  const auto sequences = operands.subspan(carries.size(), static_cast<std::size_t>(sequence_count(node)));
  const auto invariants = operands.subspan(carries.size() + sequences.size());
  return {.body = loop_body(node),
          .trips = loop_trips(node),
          .carries = {carries.begin(), carries.end()},
          .sequences = {sequences.begin(), sequences.end()},
          .invariants = {invariants.begin(), invariants.end()},
          .reverse = loop_reverse(node)};
}

std::vector<Value> loop(GraphBuilder& builder, const LoopParts& parts) {
  std::vector<Value> operands = parts.carries;
  operands.insert(operands.end(), parts.sequences.begin(), parts.sequences.end());
  operands.insert(operands.end(), parts.invariants.begin(), parts.invariants.end());
  const Graph& body = parts.body.graph();
  std::vector<Value> results;
  const std::size_t count = body.updates.size() + body.outputs.size();
  for (std::size_t r = 0; r < count; ++r)
    results.push_back(builder.add(ops::loop, operands,
                                  {{"body", parts.body},
                                   {"trips", parts.trips},
                                   {"sequences", static_cast<std::int64_t>(parts.sequences.size())},
                                   {"result", static_cast<std::int64_t>(r)},
                                   {"reverse", parts.reverse}}));
  return results;
}

}  // namespace lathe::ir
