#include "passes/shard/plan/form_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/error.h"
#include "ir/tensor/node_map.h"
#include "passes/shard/plan/min_cut.h"

namespace lathe::shard {

using namespace ir;

bool adds_once(const Node& node) {
  return (node.op == &ops::add || node.op == &ops::sub) && node.type.shape.numel().is(1);
}

namespace {

constexpr std::int64_t exchanged = 64;  // cost of sending a byte, in bytes computed redundantly instead

std::optional<Combine> combine_of(ScalarOp op) {
  if (op == ScalarOp::add) return Combine::sum;
  if (op == ScalarOp::max) return Combine::max;
  return op == ScalarOp::min ? std::optional(Combine::min) : std::nullopt;
}

/// Whether a process computes its shard of the value from shards: the op is elementwise, and its operands have the
/// value's shape or are broadcast along the sharded dim.
bool computes_part(const Graph& graph, const ShardPlan& parts, ValueId id) {
  const Node& node = graph[id];
  if (!parts.has(id) || !node.op->as<Elementwise>()) return false;
  const int dim = parts[id].dim;
  return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
    const Shape& shape = graph[operand].type.shape;
    const int d = dim - (node.type.rank() - shape.rank());
    return shape == node.type.shape || d < 0 || shape[d].is(1);
  });
}

/// Whether a reduction folds the dim of which a process may have a shard.
bool folds_part(const Graph& graph, const ShardPlan& parts, ValueId id) {
  const Node& node = graph[id];
  if (!node.op->as<Reduce>() || !parts.has(node.operands[0])) return false;
  const auto folded =
      rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"), graph[node.operands[0]].type.rank());
  return std::find(folded.begin(), folded.end(), parts[node.operands[0]].dim) != folded.end();
}

class PartialPlanner {
 public:
  PartialPlanner(const Graph& graph, const SplitPlan& splits, const ShardPlan& parts, int axis)
      : graph_(graph), splits_(splits), parts_(parts), axis_(axis), may_(graph), born_(graph) {}

  FormPlan run() {
    for (const ValueId id : all_values(graph_)) find_share(id);
    return cut();
  }

 private:
  bool may(ValueId id) const { return may_[id].has_value(); }
  bool scatters(ValueId id) const {
    const Cut* cut = splits_.cut(id);
    return cut && cut->kind == Cut::Kind::part && splits_.is_split(id, cut->dim, axis_);
  }

  /// Finds whether the value could be partial.
  void find_share(ValueId id) {
    const Node& node = graph_[id];
    if (const auto combine = birth(id)) {
      require_whole_result(id);
      may_[id] = combine;
      born_[id] = true;
    } else if (splits_.is_split(id, axis_)) {
      return;
    } else if (folds_part(graph_, parts_, id)) {
      may_[id] = combine_of(node.op->as<Reduce>()->combine);
    } else if (std::any_of(node.operands.begin(), node.operands.end(), [this](ValueId o) { return may(o); })) {
      may_[id] = passed_on(node);
    }
  }

  /// Throws [shard_repeat] unless the result is whole along the axis, because a process has one shard along an axis:
  /// of the folded dim, or of the result.
  void require_whole_result(ValueId id) const {
    if (!splits_.is_split(id, axis_)) return;
    const Node& node = graph_[id];
    throw UserError(
        node.loc, "shard",
        fmt::format("{} looks elements up along a dim that is split over {}, by positions or for a result "
                    "({}) that are split over it as well",
                    node.op->name.value, splits_.mesh()[axis_].name, node.type.to_string()),
        "shard_repeat", "a process holds one part along an axis: split one of them over another");
  }

  /// Returns how the value is combined, if the op folds a dim that is split over the axis.
  std::optional<Combine> birth(ValueId id) const {
    const Node& node = graph_[id];
    const auto split = [&](int operand, int dim) { return splits_.is_split(node.operands[operand], dim, axis_); };
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
    if (node.op->as<Loop>()) return splits_.adds_up_split(id, axis_) ? std::optional(Combine::sum) : std::nullopt;
    const auto* custom = node.op->as<Custom>();
    if (custom && custom->kind == CustomKind::gather &&
        split(0, rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), graph_[node.operands[0]].type.rank())))
      return Combine::sum;
    if (custom && custom->kind == CustomKind::scatter_add)
      for (int d = 0; d < graph_[node.operands[0]].type.rank(); ++d)
        if (split(0, d)) return Combine::sum;
    return std::nullopt;
  }

  /// Returns how the result for partial operands is combined: in the same way, if the op commutes with that.
  std::optional<Combine> passed_on(const Node& node) const {
    std::optional<Combine> combine;
    for (const ValueId operand : node.operands) {
      if (!may(operand) && parts_.has(operand)) return std::nullopt;  // it may be a shard
      if (!may(operand)) continue;
      if (combine && combine != may_[operand]) return std::nullopt;
      combine = may_[operand];
    }
    const bool sum = combine == Combine::sum;
    if (node.op->as<View>() || node.op == &ops::contiguous) return combine;
    if (const auto* meaning = node.op->as<Reduce>())
      return combine_of(meaning->combine) == combine ? combine : std::nullopt;
    if (node.op->as<Contraction>()) return sum && one_of_two(node) ? combine : std::nullopt;
    if (node.op->as<Elementwise>()) return elementwise(node, sum) ? combine : std::nullopt;
    if (node.op->as<Loop>()) return std::nullopt;
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
  /// Whether exactly one of two operands may be partial.
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

  /// Returns the bytes of a value on a process; unknown sizes are assumed to be usual for a batch or a sequence.
  std::int64_t cost(ValueId id) const {
    constexpr std::int64_t usual = 2048, most = std::int64_t{1} << 38;
    const Dim elements = splits_.local_shape(id).numel();
    DimBindings sizes;
    for (const std::string& name : elements.unknowns()) sizes[name] = usual;
    const auto element = static_cast<std::int64_t>(size_in_bytes(graph_[id].type.dtype));
    std::int64_t count = most;
    try {
      count = elements.evaluate(sizes);
    } catch (const UserError&) {  // more than 64 bits
    }
    return std::clamp<std::int64_t>(count, 1, most / element) * element;
  }

  /// Each value has four questions, one vertex each: is it computed as a shard or whole (`part_made`), is it computed
  /// whole (`whole_made`), and the same for the form that its readers need. "No" is the source's side. A value that
  /// cannot be a shard has only the questions about whole.
  struct Vertices {
    int part_made, part_needed, whole_made, whole_needed;
  };
  Vertices vertices(ValueId id) const {
    const int first = 4 * id.index;
    if (parts_.has(id)) return {first, first + 1, first + 2, first + 3};
    return {first, first + 1, first, first + 1};
  }

  FormPlan cut() const {
    MinCut graph(4 * graph_.size());
    const auto implies = [&](int yes, int then) { graph.add_edge(then, yes, MinCut::unbounded); };
    const auto is_true = [&](int vertex) { graph.add_edge(vertex, graph.sink(), MinCut::unbounded); };
    const auto is_false = [&](int vertex) { graph.add_edge(graph.source(), vertex, MinCut::unbounded); };
    for (const ValueId id : all_values(graph_)) {
      const Vertices v = vertices(id);
      const bool has_parts = parts_.has(id), split = born_[id];
      if (!may(id) && !has_parts) continue;
      const std::int64_t bytes = cost(id) * exchanged;
      graph.add_edge(v.part_made, v.part_needed, has_parts && may_[id] == Combine::sum ? bytes : 2 * bytes);
      implies(v.part_made, v.part_needed);
      if (has_parts) {
        graph.add_edge(v.whole_made, v.whole_needed, bytes);
        implies(v.whole_made, v.whole_needed);
        implies(v.whole_made, v.part_made);
        implies(v.whole_needed, v.part_needed);
      }
      if (split) is_false(v.part_made);
      if (!may(id)) is_true(v.part_made);
      if (!has_parts) continue;
      if (parts_.is_held(id)) {
        is_false(v.whole_made);
      } else if (!computes_part(graph_, parts_, id)) {
        implies(v.part_made, v.whole_made);
      } else {
        graph.add_edge(graph.source(), v.whole_made, cost(id));  // all processes compute all of it
      }
    }
    for (const ValueId id : all_values(graph_)) {
      const bool own_forms = may(id) || parts_.has(id);
      for (const ValueId operand : graph_[id].operands) {
        if (!may(operand) && !parts_.has(operand)) continue;
        if (scatters(id) && may_[operand] == Combine::sum) continue;
        const Vertices of = vertices(operand), by = vertices(id);
        if (!own_forms || born_[id]) {
          is_true(of.whole_needed);
          continue;
        }
        implies(by.whole_made, of.whole_needed);
        if (computes_part(graph_, parts_, id))
          implies(by.part_made,
                  graph_[operand].type.shape == graph_[id].type.shape ? of.part_needed : of.whole_needed);
        if (!may(id)) continue;
        if (folds_part(graph_, parts_, id)) {
          if (may_[operand] != may_[id]) is_true(of.part_needed);
        } else if (may(operand)) {
          implies(of.part_made, by.part_made);  // a partial value needs partial ones
        }
      }
    }
    for (const Output& output : graph_.outputs)
      if (may(output.value) || parts_.has(output.value)) is_true(vertices(output.value).part_needed);
    for (const Update& update : graph_.updates)
      if (may(update.value) || parts_.has(update.value)) {
        const Vertices v = vertices(update.value);
        is_true(parts_.is_held(update.state) ? v.part_needed : v.whole_needed);
      }
    return plan_of(graph.solve());
  }

  FormPlan plan_of(const std::vector<bool>& no) const {
    FormPlan plan;
    plan.values = NodeMap<FormPlan::Value>(graph_);
    const auto form = [&](int part, int whole) {
      return no[part] ? Form::partial : no[whole] ? Form::part : Form::whole;
    };
    for (const ValueId id : all_values(graph_)) {
      if (!may(id) && !parts_.has(id)) continue;
      const Vertices v = vertices(id);
      FormPlan::Value& value = plan.values[id];
      value.made = form(v.part_made, v.whole_made);
      value.reached = form(v.part_needed, v.whole_needed);
      value.born = born_[id];
      if (value.made == Form::partial) value.combine = may_[id];
    }
    for (const ValueId id : all_values(graph_)) plan.values[id].scatters = scatters(id);
    for (const ValueId id : all_values(graph_)) note_reads(plan, id);
    for (const Output& output : graph_.outputs)
      if (form_given(parts_, plan, output.value) == Form::part) plan.values[output.value].as_part = true;
    for (const Update& update : graph_.updates)
      if (parts_.is_held(update.state)) plan.values[update.value].as_part = true;
    return plan;
  }

  void note_reads(FormPlan& plan, ValueId id) const {
    FormPlan::Value& value = plan.values[id];
    bool reads_partial = false;
    for (const ValueId operand : graph_[id].operands) {
      const Form form = form_read(graph_, parts_, plan, id, operand);
      if (form == Form::part) plan.values[operand].as_part = true;
      reads_partial = reads_partial || form == Form::partial;
    }
    if (value.made == Form::partial && !reads_partial) value.born = true;
  }

  const Graph& graph_;
  const SplitPlan& splits_;
  const ShardPlan& parts_;
  int axis_;
  NodeMap<std::optional<Combine>> may_;  ///< by node: how it would be combined
  NodeMap<bool> born_;                   ///< by node: it folds a dim that is split by name
};

}  // namespace

Form form_read(const Graph& graph, const ShardPlan& parts, const FormPlan& plan, ValueId reader, ValueId operand) {
  const FormPlan::Value &made = plan[reader], &given = plan[operand];
  if (made.scatters && given.made == Form::partial && given.combine == Combine::sum) return Form::partial;
  if (made.made == Form::part)
    return parts.has(operand) && graph[operand].type.shape == graph[reader].type.shape ? Form::part : Form::whole;
  if (made.made == Form::partial) {
    if (folds_part(graph, parts, reader))
      return given.made == Form::partial && given.combine == made.combine ? Form::partial : Form::part;
    if (!made.born && given.made == Form::partial) return Form::partial;
  }
  return Form::whole;
}

Form form_given(const ShardPlan& parts, const FormPlan& plan, ValueId output) {
  return parts.has(output) && plan[output].reached == Form::part ? Form::part : Form::whole;
}

FormPlan plan_partials(const Graph& graph, const SplitPlan& splits, const ShardPlan& parts, int axis) {
  return PartialPlanner(graph, splits, parts, axis).run();
}

}  // namespace lathe::shard
