#include "passes/fusion/softmax_sums.h"

#include <algorithm>
#include <set>

#include "ir/ops/list.h"
#include "passes/fusion/fusion.h"

namespace lathe {

using namespace ir;

namespace {

/// Visits values from `first` on; `visit` gives those to go on with.
void walk(ValueId first, const std::function<std::vector<ValueId>(ValueId)>& visit) {
  std::vector<ValueId> work = {first};
  std::set<ValueId> seen = {first};
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    for (const ValueId next : visit(id))
      if (seen.insert(next).second) work.push_back(next);
  }
}

bool is_element_by_element(const Node& node) { return node.op->as<Elementwise>() || node.op->as<View>(); }

bool applies(const Node& node, ScalarOp op) {
  const auto* elementwise = node.op->as<Elementwise>();
  return elementwise && elementwise->op == op;
}

/// The operands that a value is linear in, the others being factors.
std::vector<ValueId> linear_operands(const Node& node) {
  const auto& operands = node.operands;
  const bool all = node.op == &ops::mul || node.op == &ops::add || node.op == &ops::sub || node.op == &ops::neg ||
                   node.op == &ops::cast || node.op->as<View>();
  if (all) return {operands.begin(), operands.end()};
  if (node.op == &ops::div) return {operands[0]};
  if (node.op == &ops::where) return {operands[1], operands[2]};
  return {};
}

}  // namespace

bool is_exponential(const Node& node) { return applies(node, ScalarOp::exp); }

std::vector<ValueId> exponentials_in_sum(const Graph& graph, ValueId sum) {
  std::vector<ValueId> found;
  if (!reduces_by(graph[sum], ScalarOp::add)) return found;
  walk(graph[sum].operands[0], [&](ValueId id) {
    if (is_exponential(graph[id])) found.push_back(id);
    return linear_operands(graph[id]);
  });
  return found;
}

bool is_softmax_sum(const Graph& graph, ValueId id) {
  // A softmax whose masked rows are zero keeps both its maximum and its sum from falling below a number.
  const auto shown = [&](ValueId operand) -> const Node& {
    const Node& node = graph[through_aliases(graph, operand)];
    for (const std::size_t side : {0U, 1U})
      if (node.op == &ops::maximum && is_splat(graph[through_aliases(graph, node.operands[1 - side])]))
        return graph[through_aliases(graph, node.operands[side])];
    return node;
  };
  const Node& sum = shown(id);
  if (!reduces_by(sum, ScalarOp::add)) return false;
  const Node& exp = shown(sum.operands[0]);
  if (!is_exponential(exp)) return false;
  const Node& difference = shown(exp.operands[0]);
  if (!applies(difference, ScalarOp::sub)) return false;
  const Node& most = shown(difference.operands[1]);
  return reduces_by(most, ScalarOp::max) && reduced_dims(graph, most) == reduced_dims(graph, sum) &&
         through_aliases(graph, most.operands[0]) == through_aliases(graph, difference.operands[0]);
}

bool comes_from_softmax_sum(const Graph& graph, ValueId value, const std::function<bool(ValueId)>& are_scores) {
  bool found = false;
  const auto back_to_scores = [&](ValueId id) -> std::vector<ValueId> {
    const Node& node = graph[id];
    found = found || (node.op->as<Contraction>() && are_scores(id));
    if (is_exponential(node) || is_element_by_element(node) || node.op->as<Reduce>())
      return {node.operands.begin(), node.operands.end()};
    return {};
  };
  walk(value, [&](ValueId id) -> std::vector<ValueId> {
    const Node& node = graph[id];
    if (!found)
      for (const ValueId exp : exponentials_in_sum(graph, id)) walk(exp, back_to_scores);
    if (!found && is_element_by_element(node)) return {node.operands.begin(), node.operands.end()};
    return {};
  });
  return found;
}

}  // namespace lathe
