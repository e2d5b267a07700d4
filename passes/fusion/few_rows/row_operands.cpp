#include "passes/fusion/few_rows/row_operands.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/affine.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/inline_policy.h"
#include "passes/fusion/regions/own_region.h"

namespace lathe {

using namespace ir;

namespace {

constexpr int most_cost = 32;           // of the arithmetic per element; a block computes each element once
constexpr std::size_t most_nodes = 40;  // that a kernel computes in its operand

/// Returns the last dim that is not of size 1; -1 if there is none.
int last_long_dim(const Shape& shape) {
  int d = shape.rank() - 1;
  while (d >= 0 && shape[d].is(1)) --d;
  return d;
}

/// The values that one operand can compute: those whose readers are all among them, or read the operand.
using Cone = std::set<ValueId>;

class RowOperands {
 public:
  RowOperands(const Graph& graph, const RowOperandLimits& limits, const std::function<bool(ValueId)>& wanted)
      : graph_(graph), limits_(limits), wanted_(wanted), users_(graph), result_(graph, false), found_(graph, false) {
    for (const ValueId id : graph.results()) result_[id] = true;
  }

  NodeMap<bool> run() {
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const int which = operand_of(id, node);
      if (which < 0) continue;
      const ValueId value = through_aliases(graph_, node.operands[which]);
      if (!found_[value] && is_computed_point_wise(graph_[value])) consider(value);
    }
    return std::move(found_);
  }

 private:
  /// Returns the operand whose rows the kernel of a node can compute; -1 if there is none.
  int operand_of(ValueId id, const Node& node) const {
    if (node.op == &ops::update_rows) return 2;
    return node.op->as<Contraction>() && wanted_(id) ? operand_of_few_rows(graph_, node, limits_.rows) : -1;
  }

  static bool is_computed_point_wise(const Node& node) {
    return node.op->as<Elementwise>() || node.op == &ops::concat || node.op == &ops::pad;
  }

  void consider(ValueId value) {
    row_ = last_long_dim(graph_[value].type.shape), reduces_ = true;
    if (row_ < 0 || result_[value] || !is_row_operand(value, value)) return;
    Cone cone = cone_of(value, {});
    const std::set<ValueId> left = left_to_producers(cone);
    if (left.contains(value)) return;
    cone = cone_of(value, left);
    if (cone.size() > most_nodes || cost(cone) > most_cost) return;
    for (const ValueId id : cone) found_[id] = true;
  }

  /// Whether all readers of an alias of the value, or of the value itself, compute it in their kernels. Sets
  /// `reduces_` to whether all of them can compute reductions along the row.
  bool is_row_operand(ValueId alias, ValueId value) {
    return std::ranges::all_of(users_[alias], [&](ValueId user) {
      const Node& node = graph_[user];
      if (result_[user] && is_alias(node)) return false;
      return is_alias(node) ? is_row_operand(user, value) : computes(user, node, value);
    });
  }

  bool computes(ValueId user, const Node& node, ValueId value) {
    const int which = operand_of(user, node);
    for (int i = 0; i < std::ssize(node.operands); ++i)
      if (i != which && through_aliases(graph_, node.operands[i]) == value) return false;
    if (which < 0) return false;
    if (node.op == &ops::update_rows) reduces_ = false;
    const auto index = index_of(value, node.operands[which]);
    if (!index || node.op == &ops::update_rows) return index.has_value();
    note_sums(node, which, value, *index);
    return fits(node, which, value);
  }

  /// Returns the index at which an operand reads the value, in terms of the operand's dims.
  std::optional<AffineIndex> index_of(ValueId value, ValueId operand) const {
    AffineIndex index = identity_index(graph_[operand].type.rank());
    for (ValueId id = operand; id != value; id = graph_[id].operands[0]) {
      const IndexMap map = graph_[id].op->as<View>()->map(graph_, graph_[id]);
      if (map.reshape) return std::nullopt;
      index = through_view(map, index);
    }
    return index;
  }

  /// Notes that no reduction can be computed, unless the contraction sums over the row and over nothing else.
  void note_sums(const Node& node, int which, ValueId value, const AffineIndex& index) {
    const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
    const std::string contracted = roles.contracted(), &labels = which == 0 ? roles.lhs : roles.rhs;
    const Shape &shape = graph_[value].type.shape, &operand = graph_[node.operands[which]].type.shape;
    const auto is_summed = [&](int dim) {
      return !operand[dim].is(1) && contracted.find(labels[static_cast<std::size_t>(dim)]) != std::string::npos;
    };
    for (int d = 0; d < shape.rank(); ++d) {
      const AffineComponent& c = index[static_cast<std::size_t>(d)];
      bool sums = false;
      c.each_term([&](int dim, std::int64_t) { sums = sums || is_summed(dim); });
      if (d == row_ ? !(sums && c.is_plain() && operand[c.dim] == shape[d]) : sums) reduces_ = false;
    }
    int summed = 0;
    for (int d = 0; d < operand.rank(); ++d) summed += is_summed(d) ? 1 : 0;
    reduces_ = reduces_ && summed == 1;
  }

  bool fits(const Node& node, int which, ValueId value) const {
    const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
    const auto rows = roles.size_of(which == 0 ? roles.lhs_free() : roles.rhs_free(), graph_, node).value(),
               columns = roles.size_of(which == 0 ? roles.rhs_free() : roles.lhs_free(), graph_, node).value(),
               length = roles.size_of(roles.contracted(), graph_, node).value();
    if (!length) return columns && *columns <= limits_.columns;
    return *rows * *length * static_cast<std::int64_t>(size_in_bytes(graph_[value].type.dtype)) <= limits_.bytes;
  }

  /// Returns the value, and everything that only such values read, without those in `left`.
  Cone cone_of(ValueId value, const std::set<ValueId>& left) const {
    Cone cone = {value};
    for (auto at = cone.rbegin(); at != cone.rend(); ++at) {  // from readers to operands
      if (graph_[*at].op == &ops::concat || graph_[*at].op == &ops::pad) continue;
      for (const ValueId operand : graph_[*at].operands)
        if (!left.contains(operand) && belongs(operand, value, cone)) cone.insert(operand);
    }
    return cone;
  }

  bool belongs(ValueId id, ValueId value, const Cone& cone) const {
    const Node& node = graph_[id];
    if (result_[id] || is_splat(node) || !(is_computed_point_wise(node) || is_row_reduction(node)) ||
        !has_rows_of(node.type.shape, value))
      return false;
    return std::ranges::all_of(users_[id], [&](ValueId user) { return cone.contains(user); });
  }

  bool has_rows_of(const Shape& shape, ValueId value) const {
    const Shape& whole = graph_[value].type.shape;
    if (shape.rank() != whole.rank()) return false;
    for (int d = 0; d < shape.rank(); ++d)
      if (!shape[d].is(1) && shape[d] != whole[d]) return false;
    return true;
  }

  bool is_row_reduction(const Node& node) const {
    if (!reduces_ || !node.op->as<Reduce>()) return false;
    const Shape& shape = graph_[node.operands[0]].type.shape;
    std::vector<int> dims = reduced_dims(graph_, node);
    std::erase_if(dims, [&](int d) { return shape[d].is(1); });
    return dims == std::vector<int>{row_} && shape.rank() == node.type.rank();
  }

  /// Returns the values of the cone that the kernel of a matmul should compute, as its epilogue: they depend on one
  /// value that only the cone reads, and everything that reads it leads to them.
  std::set<ValueId> left_to_producers(const Cone& cone) const {
    std::set<ValueId> left;
    for (auto at = cone.rbegin(); at != cone.rend(); ++at) {
      const Cone before = upstream(*at, cone);
      const bool reduces = std::ranges::any_of(before, [&](ValueId id) { return graph_[id].op->as<Reduce>(); });
      if (!reduces && continues_one(*at, cone, before)) left.insert(*at);
    }
    return left;
  }

  static Cone intersection(const Cone& cone, std::span<const ValueId> values) {
    Cone both;
    for (const ValueId id : values)
      if (cone.contains(id)) both.insert(id);
    return both;
  }

  /// Returns the part of the cone that a value depends on, and the value.
  Cone upstream(ValueId id, const Cone& cone) const {
    Cone before = {id};
    for (auto at = before.rbegin(); at != before.rend(); ++at) before.merge(intersection(cone, graph_[*at].operands));
    return before;
  }

  bool continues_one(ValueId id, const Cone& cone, const Cone& before) const {
    Cone sources;
    for (const ValueId member : before)
      for (const ValueId operand : graph_[member].operands) {
        const ValueId source = through_aliases(graph_, operand);
        const Node& node = graph_[source];
        if (cone.contains(operand) || node.op->as<Argument>() || node.op == &ops::constant ||
            node.type.dtype == boolean || result_[source] || !only_read_in(source, cone))
          continue;
        if (source != operand || node.type.shape != graph_[id].type.shape) return false;
        sources.insert(source);
      }
    return sources.size() == 1 && only_read_in(*sources.begin(), before);
  }

  bool only_read_in(ValueId value, const Cone& cone) const {
    return std::ranges::all_of(users_[value], [&](ValueId user) {
      return cone.contains(user) || (is_alias(graph_[user]) && !result_[user] && only_read_in(user, cone));
    });
  }

  int cost(const Cone& cone) const {
    int total = 0;
    for (const ValueId id : cone)
      if (!graph_[id].type.shape[row_].is(1)) total += arithmetic_cost(graph_[id]);
    return total;
  }

  const Graph& graph_;
  const RowOperandLimits& limits_;
  const std::function<bool(ValueId)>& wanted_;
  Users users_;
  NodeMap<bool> result_, found_;
  int row_ = -1;         // the dim of the considered value that its rows run along
  bool reduces_ = true;  // whether its readers can compute reductions along it
};

}  // namespace

int operand_of_few_rows(const Graph& graph, const Node& contraction, std::int64_t most) {
  if (!is_float(contraction.type.dtype)) return -1;
  const ContractionRoles roles = contraction.op->as<Contraction>()->roles(contraction);
  const std::string lhs_free = roles.lhs_free();
  const bool swap = !lhs_free.empty() && !roles.out.empty() && roles.out.back() == lhs_free.back();
  const auto rows = roles.size_of(swap ? roles.rhs_free() : lhs_free, graph, contraction).value();
  return rows && *rows >= 1 && *rows <= most ? (swap ? 1 : 0) : -1;
}

NodeMap<bool> find_row_operands(const Graph& graph, const RowOperandLimits& limits,
                                const std::function<bool(ValueId product)>& wanted) {
  if (limits.rows == 0) return NodeMap<bool>(graph, false);
  return RowOperands(graph, limits, wanted).run();
}

}  // namespace lathe
