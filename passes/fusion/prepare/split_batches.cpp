#include "passes/fusion/prepare/split_batches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/prepare/split_dims.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::size_t most_values = 256;  // limit on the values computed in another shape per split

class BatchSplitter {
 public:
  explicit BatchSplitter(const Graph& graph) : graph_(graph), users_(graph) {
    for (const ValueId id : graph.results()) kept_.insert(id);
  }

  /// Returns nothing if there is nothing to split.
  std::optional<Graph> run() {
    for (const ValueId id : all_values(graph_))
      if (is_split(id)) find_products(id);
    if (wanted_.empty()) return std::nullopt;
    GraphBuilder builder(graph_.name);
    Rebuilder to(builder, graph_);
    for (const ValueId id : all_values(graph_)) {
      const GraphBuilder::At at(builder, graph_[id].loc);
      to.set(id, replaced(to, id));
    }
    to.close();
    return dce(builder.finish());
  }

 private:
  using Wanted = std::map<ValueId, Shape>;  ///< nodes to compute in another shape

  bool is_split(ValueId id) const {
    const Node& node = graph_[id];
    if (!canonical::keeps_order(*node.op)) return false;
    const Shape& whole = graph_[node.operands[0]].type.shape;
    return !same_but_for_ones(whole, node.type.shape) && split_parts(whole, node.type.shape);
  }

  /// Collects the operand of the split and everything that must be computed with it, if that is possible and saves a
  /// value.
  void find_products(ValueId split) {
    Wanted found;
    const ValueId shown = graph_[split].operands[0];
    gains_ = is_computed(shown) || feeds_point_wise(split);
    if (can_have(shown, graph_[split].type.shape, found) && gains_ && can_close(found)) wanted_.merge(found);
  }

  bool is_computed(ValueId id) const { return graph_[id].op->as<Elementwise>() || graph_[id].op == &ops::expand; }

  /// Whether a matmul is only an output, which is copied anyway.
  bool is_end(ValueId id) const { return graph_[id].op->as<Contraction>() && users_[id].empty(); }

  bool feeds_point_wise(ValueId id) const {
    const auto users = users_[id];
    return std::any_of(users.begin(), users.end(), [&](ValueId user) { return graph_[user].op->as<Elementwise>(); });
  }

  /// Collects the other readers of the values in `found`: otherwise they would have to read them from memory through
  /// a merge. Matmuls do read another matmul's result from memory.
  bool can_close(Wanted& found) {
    std::vector<ValueId> work;
    for (const auto& [id, shape] : found) work.push_back(id);
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      const Shape shape = found.at(id);
      for (const ValueId user : users_[id]) {
        const Node& node = graph_[user];
        const bool from_memory = graph_[id].op->as<Contraction>() && !node.op->as<Elementwise>();
        const bool is_same = canonical::keeps_order(*node.op) && node.type.shape == shape;
        if (from_memory || is_same || wanted_.contains(user) || found.contains(user)) continue;
        const int operand =
            static_cast<int>(std::find(node.operands.begin(), node.operands.end(), id) - node.operands.begin());
        const auto result = split_result(graph_, node, operand, shape);
        const Wanted before = found;
        if (!result || !can_compute(user, *result, found)) return false;
        for (const auto& [other, its] : found)
          if (!before.contains(other)) work.push_back(other);
      }
    }
    return true;
  }

  bool is_wanted(ValueId id, const Shape& shape) const {
    const auto at = wanted_.find(id);
    return at != wanted_.end() && at->second == shape;
  }

  /// Returns the operand of a merge of dims that has this shape but for dims of size 1, without copies that only the
  /// merge needs.
  std::optional<ValueId> merged(ValueId id, const Shape& shape) const {
    if (!canonical::keeps_order(*graph_[id].op)) return std::nullopt;
    ValueId source = graph_[id].operands[0];
    if (!same_but_for_ones(graph_[source].type.shape, shape)) return std::nullopt;
    while (graph_[source].op == &ops::contiguous) source = graph_[source].operands[0];
    return source;
  }

  /// Whether a value has this shape at no cost: it is stored in memory, or only dims of size 1 are added.
  bool shows(ValueId id, const Shape& shape) const {
    const Node& node = graph_[id];
    return same_but_for_ones(node.type.shape, shape) || node.op->as<Argument>() || node.op == &ops::contiguous ||
           node.op == &ops::constant;
  }

  /// Whether a value can be provided in this shape without storing more for it; records the nodes to compute in other
  /// shapes.
  bool can_have(ValueId id, const Shape& shape, Wanted& found) {
    std::vector<Open> open;
    return settle(begin(id, shape, found, open), found, open);
  }

  /// Whether a value can be computed in this shape.
  bool can_compute(ValueId id, const Shape& shape, Wanted& found) {
    std::vector<Open> open;
    if (!begin_computing(id, shape, false, found, open)) return false;
    return settle(std::nullopt, found, open);
  }

  /// A value that can be computed in a shape if its operands can be provided.
  struct Open {
    ValueId id;
    Shape shape;
    std::vector<Shape> operands;
    bool or_shown;         ///< otherwise a view of it in that shape may do
    std::size_t next = 0;  ///< index of the next operand
  };

  /// Returns the answer for a value if it does not depend on its operands; otherwise opens it and returns nothing.
  std::optional<bool> begin(ValueId id, const Shape& shape, const Wanted& found, std::vector<Open>& open) {
    if (const auto at = wanted_.find(id); at != wanted_.end()) return at->second == shape;
    if (const auto at = found.find(id); at != found.end()) return at->second == shape;
    if (same_but_for_ones(graph_[id].type.shape, shape)) return true;
    if (const auto source = merged(id, shape)) {
      gains_ = gains_ || is_computed(*source);
      return true;
    }
    return begin_computing(id, shape, true, found, open) ? std::nullopt : std::optional(shows(id, shape));
  }

  bool begin_computing(ValueId id, const Shape& shape, bool or_shown, const Wanted& found, std::vector<Open>& open) {
    const Node& node = graph_[id];
    if (found.size() + open.size() > most_values) return false;
    if (kept_.contains(id) && !is_end(id) && !same_but_for_ones(node.type.shape, shape)) return false;
    auto split = split_node(graph_, node, shape, [&](ValueId operand) {
      const auto at = found.find(operand);
      return at == found.end() ? wanted_shape(operand) : &at->second;
    });
    if (!split) return false;
    open.push_back({id, shape, std::move(split->operands), or_shown});
    return true;
  }

  /// Processes the operands of all open values; `answer` is that of the first value, if it is known already.
  bool settle(std::optional<bool> answer, Wanted& found, std::vector<Open>& open) {
    while (!open.empty()) {
      Open& now = open.back();
      const auto& operands = graph_[now.id].operands;
      if (answer.value_or(true) && now.next < operands.size()) {
        const std::size_t i = now.next++;
        answer = begin(operands[i], Shape(now.operands[i]), found, open);
        continue;
      }
      if (answer.value_or(true))
        found.emplace(now.id, now.shape), answer = true;
      else
        answer = now.or_shown && shows(now.id, now.shape);
      open.pop_back();
    }
    return *answer;
  }

  const Shape* wanted_shape(ValueId id) const {
    const auto at = wanted_.find(id);
    return at == wanted_.end() ? nullptr : &at->second;
  }

  Value replaced(const Rebuilder& to, ValueId id) {
    const Node& node = graph_[id];
    if (is_split(id) && is_wanted(node.operands[0], node.type.shape)) return split_.at(node.operands[0]);
    const auto at = wanted_.find(id);
    if (at == wanted_.end()) return to.copy(node);
    const auto split = split_node(graph_, node, at->second, [&](ValueId operand) { return wanted_shape(operand); });
    std::vector<Value> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      operands.push_back(had(to, node.operands[i], split->operands[i]));
    const Value made = split->op ? to.builder().add(*split->op, operands, split->attrs) : operands[0];
    const Value value = with_ones(made, at->second);
    split_.emplace(id, value);
    if (value.shape() == node.type.shape) return value;
    return view(contiguous(value), node.type.shape);
  }

  /// Returns a value in the shape that can_have() accepted.
  Value had(const Rebuilder& to, ValueId id, const Shape& shape) const {
    if (is_wanted(id, shape)) return split_.at(id);
    if (graph_[id].type.shape == shape) return to[id];
    if (const auto source = merged(id, shape)) return with_ones(to[*source], shape);
    return same_but_for_ones(graph_[id].type.shape, shape) ? with_ones(to[id], shape) : view(to[id], shape);
  }

  const Graph& graph_;
  Users users_;
  /// Outputs and updates: in another shape they would have to be copied.
  std::set<ValueId> kept_;
  Wanted wanted_;
  bool gains_ = false;  ///< whether the current split saves storing a value
  std::map<ValueId, Value> split_;
};

}  // namespace

Graph split_batches(Graph graph) {
  if (std::optional<Graph> split = BatchSplitter(graph).run()) return *std::move(split);
  return graph;
}

}  // namespace lathe
