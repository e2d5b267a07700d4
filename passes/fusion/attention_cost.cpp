#include "passes/fusion/attention_cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "ir/ops/list.h"

namespace lathe {

using namespace ir;

namespace {

/// In multiply-adds for one score.
struct Rates {
  double fused_scores, fused_sums;  ///< products of a fused attention as deep as q and k, as v
  double plain_products;            ///< of each depth
  double fused_points;              ///< what becomes of a score
  double plain_points, far_points;  ///< the same through memory, within the caches and beyond
  double row;                       ///< of a fused row, for each element of its depth: packing, loading, storing
  double diagonal;                  ///< columns beyond half of them that causal rows are computed with
};
constexpr Rates forward = {1, 1, 1, 124, 193, 198, 9, 12};
constexpr Rates training = {4, 3, 3, 148, 190, 275, 30, 20};
constexpr Rates pairs_forward = {1, 1, 0.56, 124, 133, 148, 9, 12};
constexpr Rates pairs_training = {4, 3, 1.65, 148, 145, 190, 30, 20};
constexpr double slower = 1.1;                ///< fused products, in time
constexpr double lanes = 16;                  ///< rows of a vector
constexpr double cache = 8 << 20;             ///< bytes of scores
constexpr std::int64_t most_for_a_depth = 4;  ///< columns

/// How many elements a product sums over.
Dim depth_of(const Graph& graph, const Node& product) {
  const ContractionRoles roles = product.op->as<Contraction>()->roles(product);
  Dim depth(1);
  for (const char c : roles.contracted())
    depth = depth * graph[product.operands[0]].type.shape[static_cast<int>(roles.lhs.find(c))].unnamed();
  return depth;
}

/// Whether `is` holds for one of the nodes, or for one that they lead to: `next` gives the nodes behind a node.
bool leads_to(std::vector<ValueId> work, const std::function<bool(ValueId)>& is,
              const std::function<std::vector<ValueId>(ValueId)>& next) {
  std::set<ValueId> seen(work.begin(), work.end());
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (is(id)) return true;
    for (const ValueId behind : next(id))
      if (seen.insert(behind).second) work.push_back(behind);
  }
  return false;
}

/// Whether a product of a gradient reads what this product reads.
bool is_differentiated(const AttentionSubject& subject, const Node& product) {
  std::vector<ValueId> read;
  for (const ValueId operand : product.operands) read.push_back(through_aliases(subject.graph, operand));
  const auto is_gradient = [&](ValueId id) {
    return subject.node(id).op->as<Contraction>() && subject.node(id).loc.gradient();
  };
  return leads_to(read, is_gradient, [&](ValueId id) {
    const bool shown = subject.is_transparent(id) || std::find(read.begin(), read.end(), id) != read.end();
    return shown ? subject.users[static_cast<std::size_t>(id.index)] : std::vector<ValueId>{};
  });
}

/// Whether members compare positions with positions: a causal mask or a window, most likely.
bool compares_positions(const AttentionSubject& subject, const AttentionGroup& group) {
  const auto behind = [&](ValueId id) {
    return subject.is_transparent(id) ? subject.node(id).operands : std::vector<ValueId>{};
  };
  const auto is_positions = [&](ValueId id) { return subject.node(id).op == &ops::iota; };
  const auto compares = [&](ValueId id) {
    const Node& node = subject.node(id);
    return (node.op == &ops::lt || node.op == &ops::le) && leads_to({node.operands[0]}, is_positions, behind) &&
           leads_to({node.operands[1]}, is_positions, behind);
  };
  std::vector<ValueId> read;
  for (const ValueId id : group.members)
    read.insert(read.end(), subject.node(id).operands.begin(), subject.node(id).operands.end());
  return leads_to(read, compares, behind);
}

}  // namespace

std::optional<AttentionCost> attention_cost(const AttentionSubject& subject, const AttentionGroup& group,
                                            bool pairs) {
  const Graph& graph = subject.graph;
  const auto rows = group.domain[group.row].value(), columns = group.domain[group.domain.rank() - 1].value(),
             scores = group.domain.numel().value();
  if (!rows || !columns || !scores || *scores == 0) return std::nullopt;
  Dim made(0), summed(0);
  bool differentiated = false, narrow = false;
  for (const ValueId id : group.members) {
    if (!graph[id].op->as<Contraction>()) continue;
    made = made + depth_of(graph, graph[id]);
    differentiated = differentiated || is_differentiated(subject, graph[id]);
    narrow = narrow || graph[id].type.dtype == bf16;
  }
  for (const ValueId id : group.consumers) {
    if (graph[id].loc.gradient()) return std::nullopt;
    const auto size = graph[id].type.shape.numel().value();
    if (!size) return std::nullopt;
    summed = summed + Dim(*size / (*scores / *columns));
  }
  const auto q = made.value(), v = summed.value();
  if (!q || !v || 2 * *columns > most_for_a_depth * (*q + *v)) return std::nullopt;
  const Rates& rates = pairs && narrow  ? differentiated ? pairs_training : pairs_forward
                       : differentiated ? training
                                        : forward;
  const auto dq = static_cast<double>(*q), dv = static_cast<double>(*v), width = static_cast<double>(*columns),
             height = static_cast<double>(*rows);
  const double share = compares_positions(subject, group) ? std::min(1.0, 0.5 + rates.diagonal / width) : 1;
  const double filled = height / (std::ceil(height / lanes) * lanes);
  const double points = 4.0 * static_cast<double>(*scores) > cache ? rates.far_points : rates.plain_points;
  return AttentionCost{
      .fused = slower * share / filled * (rates.fused_scores * dq + rates.fused_sums * dv + rates.fused_points) +
               rates.row * (dq + dv) / 2 / width,
      .plain = rates.plain_products * (dq + dv) + points};
}

}  // namespace lathe
