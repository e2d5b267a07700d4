#include "passes/transforms/cse.h"

#include <algorithm>

#include "ir/support/hash.h"
#include "ir/tensor/node_table.h"
#include "ir/tensor/op/op.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

bool is_commutative(const Op& op) {
  const auto* elementwise = op.as<Elementwise>();
  return elementwise && traits(elementwise->op).commutes;
}

InlineList<ValueId, 4> operands_in_order(const Node& node) {
  InlineList<ValueId, 4> operands = node.operands;
  if (is_commutative(*node.op)) std::sort(operands.begin(), operands.end());
  return operands;
}

/// The first of equal nodes, whose operands must be the first of theirs.
class FirstNodes {
 public:
  /// Returns the earlier node of `graph` that is equal to `node` with these operands, which are in order; invalid if
  /// there is none.
  ValueId find(const Graph& graph, const Node& node, const InlineList<ValueId, 4>& operands) {
    hash_ = mix_hash(std::hash<const void*>{}(node.op), node.attrs.hash());
    for (const ValueId id : operands) hash_ = mix_hash(hash_, static_cast<std::size_t>(id.index));
    return nodes_.find(hash_, operands, [&](ValueId id) {
      const Node& other = graph[id];
      return other.op == node.op && other.attrs == node.attrs && other.type.shape == node.type.shape &&
             operands_in_order(other) == operands;
    });
  }
  /// Adds the node that find() has just looked for.
  void add(ValueId id, const InlineList<ValueId, 4>& operands) { nodes_.add(hash_, operands, id); }

 private:
  NodeTable nodes_;
  std::size_t hash_ = 0;
};

bool has_equal_nodes(const Graph& graph) {
  FirstNodes first;
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (node.op->as<Argument>()) continue;
    const InlineList<ValueId, 4> operands = operands_in_order(node);
    if (first.find(graph, node, operands).valid()) return true;
    first.add(id, operands);
  }
  return false;
}

}  // namespace

Graph cse(Graph graph) {
  if (!has_equal_nodes(graph)) return dce(std::move(graph));
  GraphBuilder builder(graph.name);
  builder.add_checks(graph.checks);
  Rebuilder to(builder, graph);
  FirstNodes first;
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (node.op->as<Argument>()) {
      to.set(id, to.copy(node));
      continue;
    }
    InlineList<ValueId, 4> operands;
    for (const ValueId operand : node.operands) operands.push_back(to[operand].id());
    if (is_commutative(*node.op)) std::sort(operands.begin(), operands.end());
    if (const ValueId equal = first.find(builder.graph(), node, operands); equal.valid()) {
      to.set(id, Value(builder, equal));
      continue;
    }
    to.set(id, to.copy(node));
    first.add(to[id].id(), operands);
  }
  to.close();
  return dce(builder.finish());
}

}  // namespace lathe::ir
