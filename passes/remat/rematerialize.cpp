#include "passes/remat/rematerialize.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/support/error.h"
#include "ir/tensor/op.h"
#include "passes/dce.h"
#include "passes/memory/memory_plan.h"
#include "passes/remat/candidates.h"

namespace lathe {

using namespace ir;

namespace {

/// A graph with copies, and what it takes.
struct Stage {
  Graph graph;
  std::vector<bool> recomputed;  // by node
  Program program;
  MemoryPlan plan;
  FusionPlan regions;
  std::set<std::string> sums;  // how each is made: in another way it would have other bits

  std::int64_t bytes() const { return plan.arena_bytes + plan.argument_bytes; }
};

void check_dims(const Graph& graph, const DimBindings& dims) {
  std::set<std::string> missing;
  for (const Node& node : graph.nodes)
    for (const Dim& dim : node.type.shape)
      for (const std::string& name : dim.unknowns())
        if (!dims.contains(name)) missing.insert(name);
  if (!missing.empty())
    throw UserError(fmt::format("a memory budget is judged at one size of each dim of @{}: {} {} none", graph.name,
                                fmt::join(missing, ", "), missing.size() == 1 ? "has" : "have"),
                    "memory_dims", "give their sizes with the budget");
}

class Rematerializer {
 public:
  Rematerializer(const MemoryBudget& budget, const LoweringSteps& steps) : budget_(budget), steps_(steps) {}

  Program run(const Graph& graph) {
    check_dims(graph, budget_.dims);
    Stage now = stage(graph, std::vector<bool>(graph.nodes.size(), false));
    while (now.bytes() > budget_.bytes) {
      const auto next = improve(now);
      if (!next) fail(now);
      now = std::move(*next);
    }
    return std::move(now.program);
  }

 private:
  Stage stage(Graph graph, std::vector<bool> recomputed) const {
    Program program = steps_.lower(graph, recomputed);
    MemoryPlan plan = plan_memory(program, budget_.dims, budget_.threads);
    FusionPlan regions = steps_.plan(graph, recomputed);
    std::set<std::string> sums = sums_of(graph, regions);
    return {std::move(graph), std::move(recomputed), std::move(program),
            std::move(plan),  std::move(regions),    std::move(sums)};
  }

  /// In which kind of region each reduction and product runs.
  static std::set<std::string> sums_of(const Graph& graph, const FusionPlan& plan) {
    std::set<std::string> sums;
    for (const ValueId id : all_values(graph)) {
      const Node& node = graph[id];
      if (plan.region(id) < 0 || (!node.op->as<Reduce>() && !node.op->as<Contraction>())) continue;
      const Region& region = plan.regions[static_cast<std::size_t>(plan.region(id))];
      sums.insert(fmt::format("{} {} {} in {} {}", node.op->name.value, node.type.to_string(), node.loc.to_string(),
                              static_cast<int>(region.kind), region.domain.to_string()));
    }
    return sums;
  }

  /// Copies the best kind that has not been tried and does not raise the peak.
  std::optional<Stage> improve(const Stage& now) {
    for (const RematCandidate& kind : remat_candidates(now.graph, now.regions, peak_region(now), budget_.dims)) {
      if (!tried_.insert(kind.key).second) continue;
      std::vector<std::vector<ValueId>> copies;
      Graph graph = recompute(now.graph, kind.copies, &copies);
      std::vector<bool> recomputed = marks(now.recomputed, graph, copies);
      Stage next = stage(dce(std::move(graph)), std::move(recomputed));
      if (next.bytes() <= now.bytes() && next.sums == now.sums) return next;
    }
    return std::nullopt;
  }

  /// The region that the launch at the peak belongs to: launches of one region follow each other, and are named after
  /// its members.
  static int peak_region(const Stage& now) {
    int region = 0;
    for (int l = 1; l <= now.plan.peak_launch; ++l) {
      const auto& launches = now.program.launches;
      const auto at = static_cast<std::size_t>(l);
      region += launches[at].names != launches[at - 1].names ? 1 : 0;
    }
    return region;
  }

  /// The old marks, with the copies between them, without what nobody reads any more.
  static std::vector<bool> marks(const std::vector<bool>& old, const Graph& graph,
                                 const std::vector<std::vector<ValueId>>& copies) {
    const std::vector<bool> needed = needed_nodes(graph);
    std::vector<bool> copied(graph.nodes.size(), false), result;
    for (const auto& group : copies)
      for (const ValueId id : group) copied[static_cast<std::size_t>(id.index)] = true;
    std::size_t next = 0;
    for (std::size_t i = 0; i < copied.size(); ++i) {
      const bool mark = copied[i] || old[next++];
      if (needed[i]) result.push_back(mark);
    }
    LATHE_ASSERT(next == old.size());
    return result;
  }

  [[noreturn]] void fail(const Stage& least) const {
    throw UserError(
        fmt::format("@{} does not fit a memory budget of {}: with all that can be computed again it takes {} ({} of "
                    "arguments, states and results, {} of arena)",
                    least.graph.name, format_bytes(budget_.bytes), format_bytes(least.bytes()),
                    format_bytes(least.plan.argument_bytes), format_bytes(least.plan.arena_bytes)),
        "memory_budget",
        fmt::format("{} bytes are the least; a smaller batch or sequence needs less", least.bytes()));
  }

  const MemoryBudget& budget_;
  const LoweringSteps& steps_;
  std::set<std::string> tried_;
};

}  // namespace

Program lower_within(const Graph& graph, const MemoryBudget& budget, const LoweringSteps& steps) {
  return Rematerializer(budget, steps).run(graph);
}

}  // namespace lathe
