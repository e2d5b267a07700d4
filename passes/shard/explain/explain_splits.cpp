#include "passes/shard/explain/explain_splits.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/tensor/analysis/users.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"
#include "passes/shard/plan/split_plan.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// "h.3.ln_1" -> "h.*.ln_1"
std::string without_numbers(const std::string& name) {
  std::string text;
  bool in_number = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    const bool inside_word = !in_number && digit && !text.empty() && text.back() != '.';
    if (!digit || inside_word)
      text += c;
    else if (!in_number)
      text += '*';
    in_number = digit && !inside_word;
  }
  return text;
}

/// Whether reasons include source lines, or are only compared.
enum class Lines { shown, hidden };

/// Explains why the dims of a graph's values are split.
class SplitReasons {
 public:
  SplitReasons(const Graph& graph, const Mesh& mesh, const std::vector<Split>& splits)
      : cut_(cut_sequences(primitives_of(graph), splits)),
        factored_(factor_dims(cut_.graph, cut_.cuts)),
        plan_(cut_, factored_, mesh, splits),
        users_(cut_.graph) {
    held_ = NodeMap<std::vector<Factor>>(cut_.graph);
    for (const ValueId id : all_values(cut_.graph))
      for (int d = 0; d < cut_.graph[id].type.rank(); ++d)
        for (const Factor factor : factored_.factors.resolve(factored_.dim(id, d)))
          if (!plan_.axes_of(factor).empty()) held_[id].push_back(factor);
    for (const Update& update : cut_.graph.updates) {
      updated_[update.state.index].push_back(update.value);
      updated_[update.value.index].push_back(update.state);
    }
  }

  const Graph& graph() const { return cut_.graph; }
  /// Whether a dim of the value is split by a name.
  bool is_named(ValueId id) const { return !held_[id].empty(); }

  /// "dim 1 over model in 3 blocks: h of view at gpt.cpp:41, through contract at gpt.cpp:40"
  std::string reason(ValueId argument, int axis, const SplitDim& part, Lines lines) {
    std::string text = fmt::format("dim {} over {}", part.dim, plan_.mesh()[axis].name);
    if (!part.outer.is(1)) text += fmt::format(" in {} blocks", part.outer.to_string());
    for (const Factor factor : factored_.factors.resolve(factored_.dim(argument, part.dim)))
      if (const auto& axes = plan_.axes_of(factor); std::ranges::find(axes, axis) != axes.end())
        return text + ": " + origin(argument, part.dim, factor, lines);
    return text + ": between steps each process keeps its part";
  }

 private:
  bool holds(ValueId id, Factor factor) const { return std::ranges::find(held_[id], factor) != held_[id].end(); }

  /// "view at gpt.cpp:41", "%h.*.mlp.c_fc.weight at gpt.cpp:38".
  std::string place(ValueId id, Lines lines) const {
    const Node& node = graph()[id];
    const std::string what =
        node.op->as<Argument>() ? "%" + without_numbers(node.name) : std::string(node.op->name.value);
    return lines == Lines::shown ? fmt::format("{} at {}", what, node.loc.to_string()) : what;
  }

  std::string origin(ValueId argument, int dim, Factor factor, Lines lines) {
    const SplitPlan::Origin& origin = plan_.origin(factor);
    if (graph()[argument].type.shape[dim].name() == origin.name)
      return lines == Lines::shown
                 ? fmt::format("its name is {} at {}", origin.name, graph()[argument].loc.to_string())
                 : "its name is " + origin.name;
    std::string text = origin.name + " of " + place(origin.at, lines);
    const ValueId via = ways_to(origin.at, factor)[argument];
    if (via.index >= 0 && via != origin.at) text += ", through " + place(via, lines);
    return text;
  }

  /// Returns, by value that holds the factor, the op that ties it to the next value on the path to `origin`.
  const NodeMap<ValueId>& ways_to(ValueId origin, Factor factor) {
    const auto [found, is_new] = ways_.try_emplace(factor);
    if (!is_new) return found->second;
    NodeMap<ValueId>& ways = found->second;
    ways = NodeMap<ValueId>(cut_.graph);
    ways[origin] = origin;
    std::vector<ValueId> reached{origin};
    const auto reach = [&](ValueId value, ValueId op) {
      if (ways[value].index >= 0 || !holds(value, factor)) return;
      ways[value] = op;
      reached.push_back(value);
    };
    // Ops of gradients are used only where the ops that the user wrote lead nowhere.
    for (const bool gradients : {false, true})
      for (std::size_t i = 0; i < reached.size(); ++i) {
        const ValueId value = reached[i];
        const auto reach_all = [&](ValueId op) {
          if (graph()[op].loc.gradient() && !gradients) return;
          for (const ValueId operand : graph()[op].operands) reach(operand, op);
          reach(op, op);
        };
        reach_all(value);
        for (const ValueId user : users_[value]) reach_all(user);
        if (const auto pairs = updated_.find(value.index); pairs != updated_.end())
          for (const ValueId other : pairs->second) reach(other, std::max(other, value, by_index));
      }
    return ways;
  }

  static bool by_index(ValueId a, ValueId b) { return a.index < b.index; }

  CutGraph cut_;
  FactoredGraph factored_;
  SplitPlan plan_;
  Users users_;
  NodeMap<std::vector<Factor>> held_;                     ///< by value: split factors of its dims
  std::map<std::int32_t, std::vector<ValueId>> updated_;  ///< by value: a state's new value, and the reverse
  std::map<Factor, NodeMap<ValueId>> ways_;
};

/// Arguments that are split for the same reasons.
struct Alike {
  std::string name, type;  ///< the name without numbers; empty if no name splits it
  std::string kind;        ///< the reasons without lines
  std::string first, reasons;
  int count = 0;
};

}  // namespace

std::string explain_splits(const Graph& graph, const Sharded& sharded, const std::vector<Split>& splits) {
  SplitReasons reasons(graph, sharded.mesh, splits);
  std::vector<Alike> all;
  for (const ValueId id : reasons.graph().arguments()) {
    const Node& argument = reasons.graph()[id];
    Alike own{without_numbers(argument.name), argument.type.to_string(), {}, argument.name, {}, 1};
    const Placement& placement = sharded.arguments.at(argument.name);
    for (int axis = 0; axis < sharded.mesh.axis_count(); ++axis)
      if (const auto* part = std::get_if<SplitDim>(&placement[axis])) {
        own.kind += reasons.reason(id, axis, *part, Lines::hidden) + "\n";
        own.reasons += fmt::format("  {}\n", reasons.reason(id, axis, *part, Lines::shown));
      }
    if (own.reasons.empty()) continue;
    if (!reasons.is_named(id)) own.name.clear();
    const auto same = std::ranges::find_if(all, [&](const Alike& each) {
      return each.name == own.name && (own.name.empty() || each.type == own.type) && each.kind == own.kind;
    });
    if (same == all.end())
      all.push_back(own);
    else
      ++same->count;
  }
  std::string text;
  for (const Alike& each : all) {
    const bool layers = each.count > 1 && !each.name.empty();
    text += fmt::format("%{}{}: {}{}\n{}", layers ? each.name : each.first,
                        layers ? fmt::format(" ({})", each.count) : "", each.type,
                        each.count > 1 && !layers ? fmt::format(" and {} more", each.count - 1) : "", each.reasons);
  }
  return text;
}

}  // namespace lathe::shard
