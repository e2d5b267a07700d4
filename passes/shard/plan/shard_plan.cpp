#include "passes/shard/plan/shard_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

class PartPlanner {
 public:
  PartPlanner(const Graph& graph, const SplitPlan& splits, int axis, const std::vector<ShardPlan>& earlier)
      : graph_(graph), splits_(splits), axis_(axis), earlier_(earlier), readers_(graph) {
    plan_.parts = NodeMap<std::optional<SplitDim>>(graph);
    plan_.held = NodeMap<bool>(graph);
  }

  ShardPlan run(const PartKinds& kinds) {
    find_neighbours();
    for (const ValueId id : graph_.arguments()) {
      const Node& node = graph_[id];
      if (node.op != &ops::parameter || node.type.rank() == 0 || plan_.has(id) || splits_.is_split(id, axis_))
        continue;
      if (const auto part = choose(id))
        flood(id, *part);
      else
        plan_.kept_whole.push_back(id);
    }
    for (const ValueId id : graph_.arguments())
      plan_.held[id] = plan_.has(id) && ((kinds.states && graph_[id].op == &ops::state) ||
                                         (kinds.parameters && graph_[id].op == &ops::parameter));
    return std::move(plan_);
  }

 private:
  /// Connects elementwise nodes with their operands of the same shape, and states with their new values.
  void find_neighbours() {
    for (const ValueId id : all_values(graph_)) {
      if (!graph_[id].op->as<Elementwise>()) continue;
      for (const ValueId operand : graph_[id].operands)
        if (graph_[operand].type.shape == graph_[id].type.shape) join(id, operand);
    }
    for (const Update& update : graph_.updates) join(update.state, update.value);
  }
  void join(ValueId a, ValueId b) {
    readers_[a].push_back(b);
    readers_[b].push_back(a);
  }

  std::optional<SplitDim> choose(ValueId id) const {
    Placement placement =
        placement_of_parts(splits_, earlier_, id, std::vector<bool>(static_cast<std::size_t>(axis_), true));
    for (int d = 0; d < graph_[id].type.rank(); ++d) {
      Dim outer(1);
      for (int a = 0; a < splits_.mesh().axis_count(); ++a)
        if (const auto* split = std::get_if<SplitDim>(&placement[a]); split && split->dim == d) {
          const Dim inside = split->outer * Dim(splits_.mesh()[a].ranks);
          if (inside.divided_by(outer)) outer = inside;
        }
      const auto unit = graph_[id].type.shape[d].unnamed().divided_by(outer);
      const std::int64_t ranks = splits_.mesh()[axis_].ranks;
      if (unit && unit->value() && *unit->value() > 0 && *unit->value() % ranks == 0)
        return SplitDim{d, outer, Dim(*unit->value() / ranks)};
    }
    return std::nullopt;
  }

  void flood(ValueId from, const SplitDim& part) {
    std::vector<ValueId> reached{from};
    plan_.parts[from] = part;
    while (!reached.empty()) {
      const ValueId id = reached.back();
      reached.pop_back();
      for (const ValueId next : readers_[id])
        if (!plan_.has(next) && !splits_.is_split(next, axis_)) {
          plan_.parts[next] = part;
          reached.push_back(next);
        }
    }
  }

  const Graph& graph_;
  const SplitPlan& splits_;
  int axis_;
  const std::vector<ShardPlan>& earlier_;
  NodeMap<std::vector<ValueId>> readers_;
  ShardPlan plan_;
};

}  // namespace

ShardPlan plan_parts(const Graph& graph, const SplitPlan& splits, int axis, const PartKinds& kinds,
                     const std::vector<ShardPlan>& earlier) {
  if (kinds.states || kinds.parameters) return PartPlanner(graph, splits, axis, earlier).run(kinds);
  ShardPlan none;
  none.parts = NodeMap<std::optional<SplitDim>>(graph);
  none.held = NodeMap<bool>(graph);
  return none;
}

Placement placement_of_parts(const SplitPlan& splits, const std::vector<ShardPlan>& plans, ValueId id,
                             const std::vector<bool>& axes) {
  Placement placement = splits.placement(id);
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (axes[a] && plans[a].has(id)) placement[a] = plans[a][id];
  return placement;
}

Dim held_blocks(const SplitDim& split, const Placement& placement, const Mesh& mesh) {
  Dim blocks = split.outer;
  for (int a = 0; a < mesh.axis_count(); ++a) {
    const auto* other = std::get_if<SplitDim>(&placement[a]);
    if (!other || other->dim != split.dim || other->outer == split.outer) continue;
    const Dim inside = other->outer * Dim(mesh[a].ranks);
    if (!split.outer.divided_by(inside)) continue;  // it splits this one's shards further
    const auto rest = blocks.divided_by(Dim(mesh[a].ranks));
    LATHE_ASSERT(rest.has_value());
    blocks = *rest;
  }
  return blocks;
}

Shape part_shape(const SplitPlan& splits, ValueId id, const Placement& placement) {
  Shape shape = splits.local_shape(id);
  const Mesh& mesh = splits.mesh();
  for (int a = 0; a < mesh.axis_count(); ++a) {
    const auto* split = std::get_if<SplitDim>(&placement[a]);
    if (!split || splits.is_split(id, a)) continue;
    const Dim& whole = shape[split->dim];
    const auto part = whole.unnamed().divided_by(Dim(mesh[a].ranks));
    LATHE_ASSERT(part.has_value());
    shape.set(split->dim, part->named((whole.name().empty() ? "_" : whole.name()) + "@" + mesh[a].name));
  }
  return shape;
}

}  // namespace lathe::shard
