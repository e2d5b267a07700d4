#include "passes/lowering/in_place.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/ops/collectives.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "passes/fusion/reads.h"
#include "passes/lowering/elementwise/elementwise_program.h"
#include "passes/lowering/elementwise/row_loops.h"

namespace lathe {

using namespace ir;
using Kind = ElementwiseInstruction::Kind;

namespace {

class Overwriting {
 public:
  Overwriting(const Graph& graph, const FusionPlan& plan, const Region& region)
      : graph_(graph), plan_(plan), region_(region) {
    if (!is_pointwise()) return;
    code_ = region_program(graph, plan, region);
    levels_ = loop_levels(code_);
    for (int i = 0; i < code_.size(); ++i)
      if (code_[i].buffer.valid()) readers_[base(code_[i].buffer)].push_back(i);
    for (const ElementwiseStore& store : code_.stores) stores_[store.node] = &store;
  }
  Overwriting(const Overwriting&) = delete;
  Overwriting& operator=(const Overwriting&) = delete;

  bool allowed(ValueId value, ValueId old) const {
    if (graph_[value].op == &ops::update_rows) return replaces_rows_of(value, old);
    if (!is_pointwise()) return !reads(old);
    if (region_.kind() == RegionKind::product)
      for (const ValueId operand : graph_[region_.members[0]].operands)
        if (looks_at(operand, old)) return false;
    const ElementwiseStore& store = *stores_.at(value);
    const auto found = readers_.find(old);
    if (found == readers_.end()) return true;
    for (const int i : found->second)
      if (code_[i].kind != Kind::load || code_[i].form != store.form) return false;
    return spans_domain(store.form) && !read_after(old, store.value);
  }

 private:
  bool is_pointwise() const { return region_.kind() == RegionKind::rows || region_.kind() == RegionKind::product; }
  ValueId base(ValueId id) const { return plan_.placement[id].base; }

  /// Whether `update` replaces rows of `old` itself, and neither the rows nor the positions depend on `old`.
  bool replaces_rows_of(ValueId update, ValueId old) const {
    const auto& operands = graph_[update].operands;
    return operands[0] == old && !looks_at(operands[1], old) && !looks_at(operands[2], old);
  }

  bool reads(ValueId value) const {
    return std::any_of(region_.members.begin(), region_.members.end(), [&](ValueId member) {
      const std::vector<Read> found = reads_of(graph_, member, plan_.inlined);
      return std::any_of(found.begin(), found.end(), [&](const Read& read) { return base(read.value) == value; });
    });
  }

  /// Whether loading elements of a value reads those of `old`, through views and inlined values.
  bool looks_at(ValueId value, ValueId old) const {
    std::vector<ValueId> work = {base(value)};
    std::set<ValueId> seen;
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (id == old) return true;
      if (!plan_.is_inlined(id) || !seen.insert(id).second) continue;
      for (const ValueId operand : graph_[id].operands) work.push_back(base(operand));
    }
    return false;
  }

  /// Whether the form maps each point of the domain to a distinct element.
  bool spans_domain(const Linear& form) const {
    for (int d = 0; d < code_.domain.rank(); ++d)
      if (!code_.domain[d].is(1) && form.coefficients[d].is(0)) return false;
    return true;
  }

  /// Whether a loop over the row after the one that computes `value` reads the memory of `old`.
  bool read_after(ValueId old, int value) const {
    const auto later = [&](int loop) { return loop > levels_[value]; };
    std::vector<bool> needed(code_.code.size(), false);
    for (const ElementwiseStore& store : code_.stores)
      if (later(levels_[store.value])) needed[store.value] = true;
    for (int i = code_.size() - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      const Kind kind = code_[i].kind;
      const bool sums = kind == Kind::reduce || kind == Kind::column;
      const int loop = kind == Kind::reduce ? levels_[at] - 1 : levels_[at];  // loop that traverses the arguments
      if (sums ? later(loop) : needed[at])
        for (const int arg : code_[i].args) needed[arg] = true;
      if (needed[at] && code_[i].buffer.valid() && base(code_[i].buffer) == old) return true;
    }
    return false;
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const Region& region_;
  ElementwiseProgram code_;
  std::vector<int> levels_;                            // by instruction
  std::map<ValueId, std::vector<int>> readers_;        // by value in memory: the instructions that read it
  std::map<ValueId, const ElementwiseStore*> stores_;  // by value
};

/// Whether values of the region may overwrite its inputs.
bool may_write_over(const Graph& graph, const Region& region) {
  return region.kind() == RegionKind::rows || region.kind() == RegionKind::product ||
         graph[region.members[0]].op == &ops::update_rows;
}

/// The first and last region that read a value's memory; -1 if none does.
struct ReadingRegions {
  int first = -1, last = -1;
};

/// Indexed by node; entries of views are unused.
NodeMap<ReadingRegions> readers_of(const Graph& graph, const FusionPlan& plan) {
  NodeMap<ReadingRegions> readers(graph);
  for (std::size_t r = 0; r < plan.regions.size(); ++r)
    for (const ValueId member : plan.regions[r].members)
      for (const Read& read : reads_of(graph, member, plan.inlined)) {
        const ValueId place = plan.placement[read.value].base;
        auto& [first, last] = readers[place];
        last = static_cast<int>(r);
        if (first < 0) first = last;
      }
  return readers;
}

}  // namespace

bool may_overwrite(const Graph& graph, const FusionPlan& plan, ValueId value, ValueId old) {
  const Region& region = plan.regions[plan.region(value)];
  return Overwriting(graph, plan, region).allowed(value, old);
}

NodeMap<ValueId> overwritten_values(const Graph& graph, const FusionPlan& plan,
                                    const std::function<bool(ValueId)>& temporary) {
  NodeMap<ValueId> overwritten(graph);
  std::vector<std::vector<ValueId>> dying(plan.regions.size());  // by the last region that reads them
  const NodeMap<ReadingRegions> readers = readers_of(graph, plan);
  for (const ValueId id : all_values(graph)) {
    const int region = readers[id].last;
    if (region >= 0 && temporary(id)) dying[region].push_back(id);
  }
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    const Region& region = plan.regions[r];
    if (!may_write_over(graph, region)) continue;
    std::optional<Overwriting> overwriting;
    for (const ValueId value : region.members) {
      if (!temporary(value)) continue;
      const TensorType& type = graph[value].type;
      const auto fits = [&](ValueId old) {
        const TensorType& there = graph[old].type;
        if (plan.region(old) == static_cast<int>(r) || there.dtype != type.dtype ||
            there.shape.numel() != type.shape.numel())
          return false;
        if (!overwriting) overwriting.emplace(graph, plan, region);
        return overwriting->allowed(value, old);
      };
      const auto found = std::find_if(dying[r].begin(), dying[r].end(), fits);
      if (found == dying[r].end()) continue;
      overwritten[value] = *found;
      dying[r].erase(found);
    }
  }
  return overwritten;
}

void place_gathered_parts(const Graph& graph, std::span<const Update> updates,
                          const std::function<bool(ValueId)>& temporary, FusionPlan& plan) {
  const auto is_gathered = [&](ValueId value) { return graph[value].op == &ops::all_gather; };
  if (std::ranges::none_of(updates, is_gathered, &Update::value)) return;
  const NodeMap<ReadingRegions> readers = readers_of(graph, plan);
  const auto of = [&](ValueId id) -> const ReadingRegions& { return readers[id]; };
  const auto placement = [&](ValueId id) -> Placement& { return plan.placement[id]; };
  std::map<ValueId, Placement> moved;
  for (const auto& [state, whole] : updates) {
    if (!is_gathered(whole)) continue;
    const ValueId operand = graph[whole].operands[0], part = placement(operand).base;
    const int gather = plan.region(whole);
    const bool is_all = graph[part].type.shape.numel() == graph[operand].type.shape.numel();
    if (!is_all || !temporary(part) || of(part).first != gather || of(part).last != gather ||
        of(state).last > plan.region(part) || plan.regions[plan.region(part)].kind() != RegionKind::rows)
      continue;
    const Dim elements = graph[part].type.shape.numel().unnamed();
    const Placement own = std::exchange(
        placement(part), {.base = whole, .offset = Dim(mesh_index_dim(axis_of(graph[whole]).name)) * elements});
    if (may_overwrite(graph, plan, part, state))
      moved.emplace(part, placement(part));
    else
      placement(part) = own;
  }
  for (Placement& view : plan.placement)
    if (const auto found = moved.find(view.base); found != moved.end())
      view = {.base = found->second.base, .offset = found->second.offset + view.offset};
}

}  // namespace lathe
