#include "passes/shard/partial_plan.h"

#include <algorithm>
#include <limits>

#include "ir/ops/list.h"
#include "ir/ops/rules/rules.h"
#include "ir/support/error.h"
#include "passes/shard/min_cut.h"

namespace lathe::shard {

using namespace ir;

bool adds_once(const Node& node) {
  return (node.op == &ops::add || node.op == &ops::sub) && node.type.shape.numel().is(1);
}

namespace {

std::size_t slot(ValueId id) { return static_cast<std::size_t>(id.index); }

std::optional<Combine> combine_of(ScalarOp op) {
  if (op == ScalarOp::add) return Combine::sum;
  if (op == ScalarOp::max) return Combine::max;
  return op == ScalarOp::min ? std::optional(Combine::min) : std::nullopt;
}

class PartialPlanner {
 public:
  PartialPlanner(const Graph& graph, const SplitPlan& splits, int axis)
      : graph_(graph), splits_(splits), axis_(axis), may_(graph.nodes.size()), born_(graph.nodes.size()) {}

  PartialPlan run() {
    for (const ValueId id : all_values(graph_)) find_share(id);
    return cut();
  }

 private:
  bool may(ValueId id) const { return may_[slot(id)].has_value(); }

  /// Whether the value could be a share.
  void find_share(ValueId id) {
    const Node& node = graph_[id];
    if (const auto combine = birth(id)) {
      may_[slot(id)] = combine;
      born_[slot(id)] = true;
    } else if (std::any_of(node.operands.begin(), node.operands.end(), [this](ValueId o) { return may(o); }) &&
               !splits_.is_split(id, axis_)) {
      may_[slot(id)] = passed_on(node);
    }
  }

  /// What is combined where the op folds a dim that is split over the axis.
  std::optional<Combine> birth(ValueId id) const {
    const Node& node = graph_[id];
    const auto split = [&](int operand, int dim) {
      return splits_.is_split(node.operands[static_cast<std::size_t>(operand)], dim, axis_);
    };
    if (const auto* meaning = node.op->as<Reduce>()) {
      const int rank = graph_[node.operands[0]].type.rank();
      for (const int d : rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"), rank))
        if (split(0, d)) return combine_of(meaning->combine);
    }
    if (const auto* meaning = node.op->as<Contraction>()) {
      const ContractionRoles roles = meaning->roles(node);
      for (const char label : roles.contracted())
        if (split(0, static_cast<int>(roles.lhs.find(label)))) return Combine::sum;
    }
    const auto* custom = node.op->as<Custom>();
    if (custom && custom->kind == CustomKind::gather &&
        split(0, rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), graph_[node.operands[0]].type.rank())))
      return Combine::sum;
    if (custom && custom->kind == CustomKind::scatter_add)
      for (int d = 0; d < graph_[node.operands[0]].type.rank(); ++d)
        if (split(0, d)) return Combine::sum;
    return std::nullopt;
  }

  /// What the op makes of shares: a share of the same kind, where it commutes with combining.
  std::optional<Combine> passed_on(const Node& node) const {
    std::optional<Combine> combine;
    for (const ValueId operand : node.operands) {
      if (!may(operand)) continue;
      if (combine && combine != may_[slot(operand)]) return std::nullopt;
      combine = may_[slot(operand)];
    }
    const bool sum = combine == Combine::sum;
    if (node.op->as<View>() || node.op == &ops::contiguous) return combine;
    if (const auto* meaning = node.op->as<Reduce>())
      return combine_of(meaning->combine) == combine ? combine : std::nullopt;
    if (node.op->as<Contraction>()) return sum && one_of_two(node) ? combine : std::nullopt;
    if (node.op->as<Elementwise>()) return elementwise(node, sum) ? combine : std::nullopt;
    const auto* custom = node.op->as<Custom>();
    LATHE_ASSERT(custom);
    const bool moves = (custom->kind == CustomKind::gather && !may(node.operands[1])) ||
                       (custom->kind == CustomKind::concat && all(node));
    const bool adds = sum && ((custom->kind == CustomKind::scatter_add && !may(node.operands[0])) ||
                              custom->kind == CustomKind::pad);
    return moves || adds ? combine : std::nullopt;
  }

  bool all(const Node& node) const {
    return std::all_of(node.operands.begin(), node.operands.end(), [this](ValueId o) { return may(o); });
  }
  /// One of two operands may be a share and the other may not.
  bool one_of_two(const Node& node) const { return may(node.operands[0]) != may(node.operands[1]); }

  bool elementwise(const Node& node, bool sum) const {
    if (node.op == &ops::add || node.op == &ops::sub) return sum && (all(node) || adds_once(node));
    if (node.op == &ops::neg) return sum;
    if (node.op == &ops::mul) return sum && one_of_two(node);
    if (node.op == &ops::div) return sum && is_float(node.type.dtype) && !may(node.operands[1]);
    if (node.op == &ops::where) return !may(node.operands[0]) && may(node.operands[1]) && may(node.operands[2]);
    if (node.op == &ops::cast) {
      const DType from = graph_[node.operands[0]].type.dtype, to = node.type.dtype;
      return is_float(from) && is_float(to) && size_in_bytes(to) >= size_in_bytes(from) &&
             !(from == f16 && to == bf16) && !(from == bf16 && to == f16);
    }
    return false;
  }

  /// Bytes of a value on a process, where unknown sizes count as one that is usual for a batch or a sequence.
  std::int64_t cost(ValueId id) const {
    constexpr std::int64_t usual = 1024, most = std::int64_t{1} << 44;
    const Dim elements = splits_.local_shape(id).numel();
    DimBindings sizes;
    for (const std::string& name : elements.unknowns()) sizes[name] = usual;
    const auto element = static_cast<std::int64_t>(size_in_bytes(graph_[id].type.dtype));
    std::int64_t count = most;
    try {
      count = elements.evaluate(sizes);
    } catch (const UserError&) {  // more than 64 bits hold
    }
    return std::clamp<std::int64_t>(count, 1, most / element) * element;
  }

  /// Vertices 2i and 2i + 1 stand for value i as a share and combined: the first lies on the source's side where the
  /// share is computed, the edge between them is cut where it is combined.
  PartialPlan cut() const {
    MinCut graph(2 * graph_.size());
    const auto share = [](ValueId id) { return 2 * id.index; };
    const auto combined = [](ValueId id) { return 2 * id.index + 1; };
    const auto need = [&](ValueId id) {
      if (may(id)) graph.add_edge(combined(id), graph.sink(), MinCut::unbounded);
    };
    for (const ValueId id : all_values(graph_)) {
      if (may(id)) {
        graph.add_edge(share(id), combined(id), cost(id));
        graph.add_edge(combined(id), share(id), MinCut::unbounded);
        if (born_[slot(id)]) graph.add_edge(graph.source(), share(id), MinCut::unbounded);
      }
      for (const ValueId operand : graph_[id].operands) {
        if (!may(operand)) continue;
        if (!may(id) || born_[slot(id)]) {
          need(operand);
          continue;
        }
        graph.add_edge(combined(operand), share(id), MinCut::unbounded);  // a value of combined ones is combined
        graph.add_edge(share(id), share(operand), MinCut::unbounded);     // a share needs the shares
      }
    }
    for (const ValueId id : graph_.results()) need(id);
    return plan_of(graph.solve());
  }

  PartialPlan plan_of(const std::vector<bool>& source_side) const {
    PartialPlan plan;
    plan.shares.resize(graph_.nodes.size());
    for (const ValueId id : all_values(graph_)) {
      if (!may(id) || !source_side[2 * slot(id)]) continue;
      plan.shares[slot(id)] = {may_[slot(id)], born_[slot(id)], !source_side[2 * slot(id) + 1]};
    }
    return plan;
  }

  const Graph& graph_;
  const SplitPlan& splits_;
  int axis_;
  std::vector<std::optional<Combine>> may_;
  std::vector<bool> born_;
};

}  // namespace

PartialPlan plan_partials(const Graph& graph, const SplitPlan& splits, int axis) {
  return PartialPlanner(graph, splits, axis).run();
}

}  // namespace lathe::shard
