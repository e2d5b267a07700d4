#include "passes/shard/shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/ops/functional/functional.h"
#include "ir/ops/list.h"
#include "ir/support/error.h"
#include "passes/shard/local_ops.h"
#include "passes/shard/partial_plan.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Axes of a mesh as bits.
using AxisSet = unsigned;

class LocalGraph {
 public:
  LocalGraph(const Graph& graph, const SplitPlan& splits)
      : graph_(graph), splits_(splits), mesh_(splits.mesh()), builder_(std::make_shared<GraphBuilder>(graph.name)) {
    for (int a = 0; a < mesh_.axis_count(); ++a) partials_.push_back(plan_partials(graph, splits, a));
  }

  Sharded run() {
    add_checks();
    for (const ValueId id : all_values(graph_)) add(id);
    for (const Output& output : graph_.outputs) {
      builder_->output(output.name, combined(output.value, shares(output.value)));
      result_.results[output.name] = splits_.placement(output.value);
    }
    for (const Update& update : graph_.updates) {
      builder_->update(held(update.state), combined(update.value, shares(update.value)));
      result_.results[graph_[update.state].name] = splits_.placement(update.state);
    }
    result_.mesh = mesh_;
    result_.graph = builder_->finish();
    return std::move(result_);
  }

 private:
  static AxisSet bit(int axis) { return 1u << static_cast<unsigned>(axis); }
  const PartialPlan::Share& share(ValueId id, int axis) const {
    return partials_[static_cast<std::size_t>(axis)][id];
  }
  Value held(ValueId id) const { return values_.at({id.index, 0u}); }

  /// The axes along which the value is computed as shares.
  AxisSet shares(ValueId id) const {
    AxisSet set = 0;
    for (int a = 0; a < mesh_.axis_count(); ++a)
      if (share(id, a).combine) set |= bit(a);
    return set;
  }

  void add(ValueId id) {
    const Node& node = graph_[id];
    std::vector<Value> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand_of(id, operand));
    Value value = add_local(*builder_, graph_, splits_, id, operands);
    values_.insert_or_assign({id.index, 0u}, value);
    if (!node.name.empty() && !node.op->as<Argument>()) builder_->set_name(value, node.name);
    if (node.op->as<Argument>()) result_.arguments[node.name] = splits_.placement(id);
  }

  /// An operand as the op needs it: as shares where the op passes them on, else combined.
  Value operand_of(ValueId id, ValueId operand) {
    AxisSet needed = 0;
    std::vector<int> once;
    for (int a = 0; a < mesh_.axis_count(); ++a) {
      const auto &result = share(id, a), &given = share(operand, a);
      const bool passes = result.combine && !result.born;
      if (given.combine && !passes) needed |= bit(a);
      if (!given.combine && passes && adds_once(graph_[id])) once.push_back(a);
    }
    Value value = combined(operand, needed);
    const GraphBuilder::At at(*builder_, graph_[id].loc);
    for (const int a : once)
      value = ir::where(ir::eq(mesh_index(*builder_, mesh_[a]), 0.0), value, ir::number_like(value, 0));
    return value;
  }

  /// The value combined over these axes, each once.
  Value combined(ValueId id, AxisSet axes) {
    if (const auto found = values_.find({id.index, axes}); found != values_.end()) return found->second;
    int last = mesh_.axis_count() - 1;
    while (!(axes & bit(last))) --last;
    const PartialPlan::Share& plan = share(id, last);
    LATHE_ASSERT(plan.combine && plan.combined);
    const Value before = combined(id, axes & ~bit(last));
    const GraphBuilder::At at(*builder_, graph_[id].loc);
    const Value after = all_reduce(before, mesh_[last], name(*plan.combine));
    note(id, after, last, *plan.combine);
    values_.insert_or_assign({id.index, axes}, after);
    return after;
  }

  /// Where the shares of a value were born: the first of them.
  ValueId birth(ValueId id, int axis) const {
    while (!share(id, axis).born)
      for (const ValueId operand : graph_[id].operands)
        if (share(operand, axis).combine) {
          id = operand;
          break;
        }
    return id;
  }

  void note(ValueId id, const Value& after, int axis, Combine combine) {
    const Node &node = graph_[id], &born = graph_[birth(id, axis)];
    const Dim bytes = after.shape().numel() * Dim(static_cast<std::int64_t>(size_in_bytes(after.dtype())));
    result_.exchanges.push_back(
        {std::string(after.node().op->name.value), mesh_[axis].name,
         node.name.empty() ? after.type().to_string() : fmt::format("{}: {}", node.name, after.type().to_string()),
         bytes, node.loc,
         fmt::format("{} at {} folds a dim that is split over {}: each process has its share of the {}",
                     born.op->name.value, born.loc.to_string(), mesh_[axis].name, name(combine))});
  }

  void add_checks() {
    for (DimCheck check : graph_.checks) {
      check.left = splits_.whole(check.left);
      check.right = splits_.whole(check.right);
      builder_->add_checks({&check, 1});
    }
  }

  const Graph& graph_;
  const SplitPlan& splits_;
  const Mesh& mesh_;
  std::shared_ptr<GraphBuilder> builder_;
  std::vector<PartialPlan> partials_;                         ///< by axis
  std::map<std::pair<std::int32_t, AxisSet>, Value> values_;  ///< by node and the axes over which it is combined
  Sharded result_;
};

}  // namespace

Sharded shard(const Graph& graph, const Mesh& mesh, const std::vector<Split>& splits) {
  const Graph primitives = dce(ir::expand(graph));
  const FactoredGraph factored = factor_dims(primitives);
  const SplitPlan plan(primitives, factored, mesh, splits);
  Sharded sharded = LocalGraph(primitives, plan).run();
  sharded.graph = dce(std::move(sharded.graph));
  return sharded;
}

std::string explain(const Sharded& sharded) {
  std::string text = fmt::format("{} processes: {}\n", sharded.mesh.size(), sharded.mesh.to_string());
  std::map<std::pair<std::string, std::string>, std::pair<int, Dim>> totals;
  for (const Exchange& each : sharded.exchanges) {
    text += fmt::format("{} over {}: {}, {} bytes\n  {}: {}\n", each.op, each.axis, each.value,
                        each.bytes.to_string(), each.loc.to_string(), each.reason);
    auto& total = totals.try_emplace({each.op, each.axis}, 0, Dim(0)).first->second;
    ++total.first;
    total.second = total.second + each.bytes;
  }
  for (const auto& [key, total] : totals)
    text +=
        fmt::format("total: {} {} over {}, {} bytes\n", total.first, key.first, key.second, total.second.to_string());
  std::map<std::string, Dim> held;
  for (const ValueId id : sharded.graph.arguments()) {
    const Node& node = sharded.graph[id];
    Dim& bytes = held.try_emplace(std::string(node.op->name.value), 0).first->second;
    bytes = bytes + node.type.shape.numel() * Dim(static_cast<std::int64_t>(size_in_bytes(node.type.dtype)));
  }
  for (const auto& [kind, bytes] : held)
    text +=
        fmt::format("a process holds {} bytes of {}\n", bytes.to_string(), kind == "input" ? "inputs" : kind + "s");
  return text;
}

}  // namespace lathe::shard
