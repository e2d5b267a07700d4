#include "passes/transforms/constant_fold.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/collectives.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/lookups.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/node_map.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

bool small(const Node& node, std::int64_t limit) {
  const Shape& shape = node.type.shape;
  const bool known = std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.value().has_value(); });
  return known && *shape.numel().value() <= limit && !is_complex(node.type.dtype);
}

/// Returns whether an attribute depends on the sizes of a run: a slice of a constant may start at index n.
bool has_unknown_dim(const Node& node) {
  return std::ranges::any_of(node.attrs.entries(), [](const Attributes::Entry& entry) {
    const Dim* const dim = std::get_if<Dim>(&entry.second);
    return dim && !dim->value();
  });
}

/// Returns which nodes depend on small constants alone.
NodeMap<bool> constant_nodes(const Graph& graph, std::int64_t limit) {
  NodeMap<bool> known(graph);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    const bool source = node.operands.empty() && !node.op->as<Argument>();
    // An index out of range must be an error of the run, not of the compilation. A loop may run for long.
    const bool computed =
        !node.operands.empty() && !is_lookup(*node.op) && !is_loop(node) && !has_unknown_dim(node) &&
        std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return known[operand]; });
    // Values that come from other processes, or distinguish them, are known only at run time.
    known[id] = (source || computed) && !is_collective(*node.op) && small(node, limit);
  }
  return known;
}

Value as_constant(GraphBuilder& builder, const Node& node, const HostTensor& computed) {
  NumberList values;
  bool same = true;
  for (std::int64_t i = 0; i < computed.numel(); ++i) {
    values.push_back(computed.get_number(i));
    const Number first = values[0], last = values[values.size() - 1];
    same = same && last == first && std::signbit(last.real()) == std::signbit(first.real());
  }
  if (same && !values.empty()) values = {values[0]};
  return literal(builder, node.type.shape, std::move(values), node.type.dtype);
}

}  // namespace

Graph constant_fold(Graph graph, std::int64_t limit) {
  const auto known = constant_nodes(graph, limit);
  GraphBuilder constants_builder(graph.name);
  Rebuilder constants(constants_builder, graph);
  std::vector<ValueId> wanted, positions;
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (!known[id]) continue;
    constants.set(id, constants.copy(node));
    if (node.operands.empty() || node.op->as<View>()) continue;
    wanted.push_back(id);
    positions.push_back(constants[id].id());
  }
  if (wanted.empty()) return graph;
  const auto computed = interpret_values(constants_builder.graph(), {}, positions);

  GraphBuilder builder(graph.name);
  Rebuilder to(builder, graph);
  std::size_t next = 0;
  for (const ValueId id : all_values(graph)) {
    std::optional<Value> now;
    if (next < wanted.size() && wanted[next] == id) {
      const GraphBuilder::At at(builder, graph[id].loc);
      now = as_constant(builder, graph[id], computed[next++]);
    }
    to.set(id, now ? *now : to.copy(graph[id]));
  }
  to.close();
  return dce(builder.finish());
}

}  // namespace lathe::ir
