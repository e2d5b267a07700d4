#include "passes/transforms/canonicalize.h"

#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/op/op.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace canonical {

Value operand_of(const Value& value, int i) { return {value.builder(), value.node().operands[i]}; }

bool is(const Value& value, const Op& op) { return value.node().op == &op; }

namespace {

bool same(const Value& value, const Node& node, std::span<const Value> operands) {
  const Node& other = value.node();
  if (other.op != node.op || other.attrs != node.attrs || other.operands.size() != operands.size()) return false;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (other.operands[i] != operands[i].id()) return false;
  return true;
}

/// Whether the value can replace the node. If only a run-time check makes two sizes equal, an op gives its result one
/// of them, which may not be the one that the node has. The value cannot replace the node in that case.
bool fits(const Value& value, const Context& context) {
  const Shape &made = value.shape(), &wanted = context.shape();
  LATHE_ASSERT(value.dtype() == context.node.type.dtype && made.rank() == wanted.rank());
  for (int d = 0; d < made.rank(); ++d) LATHE_ASSERT(made[d] == wanted[d] || !made[d].value() || !wanted[d].value());
  return made == wanted;
}

std::optional<Value> apply_first(const Context& context) {
  for (const auto rules : {view_rules(), algebra_rules(), join_rules(), contract_rules()})
    for (const Rule& rule : rules) {
      const auto value = rule.apply(context);
      if (value && !same(*value, context.node, context.operands) && fits(*value, context)) return value;
    }
  return std::nullopt;
}

/// Applies rules to the result of a rule until none fires.
Value apply_to_fixpoint(Value value, const NodeMap<int>& use_counts) {
  // Far above any chain of rules; the rest waits for the next run over the graph.
  constexpr int rounds = 16;
  for (int i = 0; i < rounds; ++i) {
    const Node node = value.node();
    if (node.op->as<Argument>()) break;
    std::vector<Value> operands;
    for (const ValueId id : node.operands) operands.emplace_back(value.builder(), id);
    const auto next = apply_first({value.builder(), node, operands, use_counts});
    if (!next) break;
    value = *next;
  }
  return value;
}

NodeMap<int> count_uses(const Graph& graph) {
  NodeMap<int> uses(graph);
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.operands) ++uses[id];
  for (const ValueId id : graph.results()) ++uses[id];
  return uses;
}

/// Whether no rule fires on any node of a graph without equal nodes. The graph is not changed.
bool is_canonical(Graph& graph) {
  const std::size_t nodes = graph.nodes.size(), checks = graph.checks.size();
  const NodeMap<int> use_counts = count_uses(graph);
  GraphBuilder builder(std::move(graph));
  bool fires = false;
  for (std::size_t i = 0; i < nodes && !fires; ++i) {
    const Value value(builder, {static_cast<std::int32_t>(i)});
    const Node& node = value.node();
    if (node.op->as<Argument>()) continue;
    const GraphBuilder::At at(builder, node.loc);
    std::vector<Value> operands;
    for (const ValueId id : node.operands) operands.emplace_back(builder, id);
    fires = apply_first({builder, node, operands, use_counts}).has_value();
  }
  graph = builder.finish();
  graph.nodes.shrink(nodes);  // without nodes that rules added
  graph.checks.erase(graph.checks.begin() + static_cast<std::ptrdiff_t>(checks), graph.checks.end());
  return !fires;
}

/// Returns nothing if no rule fires and no two nodes are equal.
std::optional<Graph> run_once(const Graph& graph) {
  bool fired = false;
  GraphBuilder builder(graph.name);
  builder.add_checks(graph.checks);  // first, because they refer to the ops that the user wrote
  Rebuilder to(builder, graph);
  const auto uses = count_uses(graph);
  NodeMap<int> use_counts;
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    std::optional<Value> now;
    if (!node.op->as<Argument>()) {
      const GraphBuilder::At at(builder, node.loc);
      const auto operands = to.operands(node);
      now = apply_first({builder, node, operands, use_counts});
      if (now) now = apply_to_fixpoint(*now, use_counts);
      fired = fired || now;
    }
    to.set(id, now ? *now : to.copy(node));
    use_counts.grow(builder.graph());
    use_counts[to[id].id()] += uses[id];
  }
  if (!fired && builder.graph().size() == graph.size()) return std::nullopt;
  to.close();
  return dce(builder.finish());
}

}  // namespace

}  // namespace canonical

Graph canonicalize(Graph graph) {
  constexpr int rounds = 10;  // each run completes every chain; more than three are rare
  Graph before = dce(std::move(graph));
  for (int i = 0; i < rounds; ++i) {
    std::optional<Graph> after = canonical::run_once(before);
    if (!after) return before;
    if (structurally_equal(before, *after)) return *std::move(after);
    before = std::move(*after);
    if (canonical::is_canonical(before)) return before;
  }
  return before;
}

}  // namespace lathe::ir
