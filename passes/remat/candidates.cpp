#include "passes/remat/candidates.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"
#include "passes/fusion/affine.h"
#include "passes/fusion/inline_policy.h"
#include "passes/fusion/reads.h"
#include "passes/fusion/regions/own_region.h"
#include "passes/remat/work.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::size_t most_copied = 128;  // nodes per value
constexpr int negligible = 16;            // a value this many times smaller may be kept longer

class CandidateFinder {
 public:
  CandidateFinder(const Graph& graph, const FusionPlan& plan, int peak, const DimBindings& dims)
      : graph_(graph), users_(graph), plan_(plan), peak_(peak), dims_(dims), last_(graph, -1), readers_(graph) {
    find_readers();
    find_only_late();
  }

  std::vector<RematCandidate> run() {
    std::map<std::string, RematCandidate> kinds;
    for (const ValueId id : all_values(graph_)) {
      if (!alive_but_idle(id)) continue;
      const auto cone = copies_of(id);
      if (!cone) continue;
      const Node& node = graph_[id];
      std::string key = fmt::format("{} {} {}", node.op->name.value, node.type.to_string(), node.loc.to_string());
      RematCandidate& kind = kinds[key];
      kind.key = std::move(key);
      kind.bytes += bytes(id);
      kind.work += cone->second;
      kind.copies.push_back(cone->first);
    }
    std::vector<RematCandidate> found;
    for (auto& [key, kind] : kinds) found.push_back(std::move(kind));
    std::stable_sort(found.begin(), found.end(), [](const RematCandidate& a, const RematCandidate& b) {
      return a.bytes * b.work > b.bytes * a.work;
    });
    return found;
  }

 private:
  double elements(ValueId id) const { return static_cast<double>(graph_[id].type.shape.numel().evaluate(dims_)); }
  double bytes(ValueId id) const { return elements(id) * static_cast<double>(size_in_bytes(graph_[id].type.dtype)); }

  /// Finds the readers of each stored value in memory, and the last region that reads it.
  void find_readers() {
    for (const ValueId id : all_values(graph_)) {
      if (plan_.region(id) < 0) continue;
      const Node& node = graph_[id];
      for (const ValueId operand : node.operands) note_reader(operand, id);
    }
    for (const ValueId id : graph_.results()) held_.insert(id);
  }

  void note_reader(ValueId operand, ValueId reader) {
    std::vector<ValueId> work = {operand};
    std::set<ValueId> seen;
    while (!work.empty()) {
      const ValueId base = plan_.placement[work.back()].base;
      work.pop_back();
      if (plan_.is_inlined(base)) {
        const auto& inner = graph_[base].operands;
        if (seen.insert(base).second) work.insert(work.end(), inner.begin(), inner.end());
        continue;
      }
      if (!readers_[base].empty() && readers_[base].back() == reader) continue;
      readers_[base].push_back(reader);
      last_[base] = std::max(last_[base], plan_.region(reader));
    }
  }

  /// Finds the values that only late readers use, directly or through views and inlined nodes.
  void find_only_late() {
    only_late_ = NodeMap<bool>(graph_, true);
    for (const ValueId id : reversed_values(graph_))
      for (const ValueId user : users_[id]) {
        const bool late = looked_through(user) ? only_late_[user] : plan_.region(user) > peak_;
        only_late_[id] = only_late_[id] && late;
      }
  }

  /// Whether a value is in the arena during the peak, computed before it, read after it, and not used at the peak
  /// itself.
  bool alive_but_idle(ValueId id) const {
    const int made = plan_.region(id);
    if (made < 0 || made >= peak_ || last_[id] <= peak_ || !plan_.is_stored(id) || held_.contains(id)) return false;
    const auto& readers = readers_[id];
    return std::none_of(readers.begin(), readers.end(), [&](ValueId r) { return plan_.region(r) == peak_; });
  }

  /// Returns the nodes to copy so that the late readers of a value no longer need it, and the work of computing them.
  std::optional<std::pair<Recomputation, double>> copies_of(ValueId id) {
    std::set<ValueId> copied, readers;
    int first = std::numeric_limits<int>::max();
    for (const ValueId reader : readers_[id]) {
      if (plan_.region(reader) <= peak_) continue;
      readers.insert(reader);
      first = std::min(first, plan_.region(reader));
      for (const ValueId operand : graph_[reader].operands) add_path(operand, id, copied, readers);
    }
    double work = 0;
    if (!add_cone(id, first, elements(id), copied, work)) return std::nullopt;
    // Copies are before the first reader, so their inputs must exist by then.
    if (*copied.rbegin() >= *readers.begin()) return std::nullopt;
    return std::pair(Recomputation{{copied.begin(), copied.end()}, {readers.begin(), readers.end()}}, work);
  }

  /// Readers may use the value through views and inlined nodes. Nodes of this kind that only late readers use read
  /// the copy; the others are copied.
  void add_path(ValueId from, ValueId to, std::set<ValueId>& copied, std::set<ValueId>& readers) const {
    std::set<ValueId> shows = {to};  // values that depend on the copy
    for (const ValueId id : ancestors(graph_, from, [&](ValueId v) { return v != to && looked_through(v); })) {
      const auto& operands = graph_[id].operands;
      const bool leads = id != to && looked_through(id) &&
                         std::any_of(operands.begin(), operands.end(), [&](ValueId o) { return shows.contains(o); });
      if (!leads) continue;
      if (only_late_[id]) {
        readers.insert(id);
      } else {
        copied.insert(id);
        shows.insert(id);
      }
    }
  }

  bool looked_through(ValueId id) const { return is_alias(graph_[id]) || plan_.is_inlined(id); }

  /// A value on the path from a copied one, and how many of its operands have been visited.
  struct Open {
    ValueId id;
    bool looked_through;
    std::size_t before;  ///< number of values copied before it
    std::size_t next = 0;
  };

  /// Adds a value and the values it needs that are no longer available by then.
  bool add_cone(ValueId value, int first, double size, std::set<ValueId>& copied, double& work) const {
    if (!copied.insert(value).second) return true;
    std::vector<Open> open;
    const auto copy = [&](ValueId id) {
      if (copied.size() > most_copied || !may_run_again(id)) return false;
      work += work_of(id);
      open.push_back({id, false, copied.size()});
      return true;
    };
    if (!copy(value)) return false;
    while (!open.empty()) {
      Open& now = open.back();
      const Node& node = graph_[now.id];
      if (now.next == node.operands.size()) {
        // It is copied too if one of its inputs is, so that it reads the copy.
        if (now.looked_through && (copied.size() > now.before || shows_copy(node, copied))) copied.insert(now.id);
        open.pop_back();
        continue;
      }
      const ValueId id = node.operands[now.next++];
      if (graph_[id].op->as<Argument>() || graph_[id].op == &ops::constant) continue;
      if (looked_through(id)) {
        open.push_back({id, true, copied.size()});
      } else if (!copied.contains(id) && !is_saved(id, first, size)) {
        copied.insert(id);
        if (!copy(id)) return false;
      }
    }
    return true;
  }

  /// Whether a value that a copy needs is in memory throughout, or may be kept there.
  bool is_saved(ValueId id, int first, double size) const {
    return plan_.is_stored(id) && (last_[id] >= first || elements(id) * negligible <= size);
  }

  static bool shows_copy(const Node& node, const std::set<ValueId>& copied) {
    return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId o) { return copied.contains(o); });
  }

  /// Whether a value may be computed again; fused attention may not.
  bool may_run_again(ValueId id) const {
    const int region = plan_.region(id);
    const bool fused = region >= 0 && plan_.regions[region].kind() == RegionKind::attention;
    return !fused && !own_region(graph_[id]);
  }

  double work_of(ValueId id) const {
    const Node& node = graph_[id];
    if (const auto* contraction = node.op->as<Contraction>()) {
      const ContractionRoles roles = contraction->roles(node);
      const auto depth = static_cast<double>(roles.size_of(roles.contracted(), graph_, node).evaluate(dims_));
      return elements(id) * (depth + memory_work);
    }
    const double points = node.op->as<Reduce>() ? elements(node.operands[0]) : elements(id);
    return points * (memory_work + arithmetic_cost(node));
  }

  const Graph& graph_;
  Users users_;
  const FusionPlan& plan_;
  int peak_;
  const DimBindings& dims_;
  NodeMap<int> last_;                      // by node: the last region that reads it
  NodeMap<std::vector<ValueId>> readers_;  // by node: members of regions
  NodeMap<bool> only_late_;                // by node: whether it is read only after the peak
  std::set<ValueId> held_;                 // results
};

}  // namespace

std::vector<RematCandidate> remat_candidates(const Graph& graph, const FusionPlan& plan, int peak,
                                             const DimBindings& dims) {
  return CandidateFinder(graph, plan, peak, dims).run();
}

}  // namespace lathe
