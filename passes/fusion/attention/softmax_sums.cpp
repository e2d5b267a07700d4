#include "passes/fusion/attention/softmax_sums.h"

#include <algorithm>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/softmax_floors.h"
#include "ir/tensor/constants.h"
#include "passes/fusion/fusion.h"

namespace lathe {

using namespace ir;

namespace {

/// Visits values from `first` on; `visit` returns the next ones to visit.
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

/// Returns the operands in which a value is linear; the others are factors.
std::vector<ValueId> linear_operands(const Node& node) {
  const auto& operands = node.operands;
  const bool all = node.op == &ops::mul || node.op == &ops::add || node.op == &ops::sub || node.op == &ops::neg ||
                   node.op == &ops::cast || node.op->as<View>();
  if (all) return {operands.begin(), operands.end()};
  if (node.op == &ops::div) return {operands[0]};
  if (node.op == &ops::where) return {operands[1], operands[2]};
  return {};
}

/// Returns the operand of a maximum with this number, in either order; otherwise the value itself.
ValueId without_floor(const Graph& graph, ValueId value, double floor) {
  const ValueId own = through_aliases(graph, value);
  const Node& node = graph[own];
  if (node.op != &ops::maximum) return own;
  for (const std::size_t side : {0U, 1U}) {
    const Node& other = graph[through_aliases(graph, node.operands[1 - side])];
    if (is_splat(other) && constant_values(other)[0] == floor) return through_aliases(graph, node.operands[side]);
  }
  return own;
}

/// Whether both are the same views of one value, or of copies of it that came from another process.
bool are_same_value(const Graph& graph, ValueId a, ValueId b) {
  while (a != b) {
    const Node &one = graph[a], &other = graph[b];
    Attributes attrs = one.attrs, others = other.attrs;
    const bool came = one.op == &ops::send_recv;
    if (came)
      for (Attributes* each : {&attrs, &others}) each->set("again", true);
    if (one.op != other.op || !(came || one.op->as<View>() || one.op == &ops::contiguous) || !(attrs == others))
      return false;
    a = one.operands[0];
    b = other.operands[0];
  }
  return true;
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

bool are_same_product(const Graph& graph, ValueId a, ValueId b) {
  const Node &one = graph[a], &other = graph[b];
  return one.op == other.op && one.attrs == other.attrs &&
         std::ranges::equal(one.operands, other.operands,
                            [&](ValueId x, ValueId y) { return are_same_value(graph, x, y); });
}

bool is_softmax_sum(const Graph& graph, ValueId id) {
  const auto shown = [&](ValueId operand) -> const Node& { return graph[through_aliases(graph, operand)]; };
  const Node& sum = graph[without_floor(graph, id, least_softmax_sum)];
  if (!reduces_by(sum, ScalarOp::add)) return false;
  const Node& exp = shown(sum.operands[0]);
  if (!is_exponential(exp)) return false;
  const Node& difference = shown(exp.operands[0]);
  if (!applies(difference, ScalarOp::sub)) return false;
  const DType dtype = difference.type.dtype;
  const Node& most = graph[without_floor(graph, difference.operands[1], least_softmax_maximum(dtype))];
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
