#include "passes/compile/fit_budget.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "passes/compile/sum_kinds.h"
#include "passes/lowering/lower.h"
#include "passes/program/collective_order.h"
#include "passes/remat/candidates.h"
#include "passes/transforms/dce.h"

namespace lathe {

using namespace ir;

namespace {

/// The origin of a node in a graph with copies.
struct Origin {
  int node;  // in the graph without copies
  bool copy;
};

/// A graph with copies, and its cost.
struct Attempt {
  Graph graph;
  std::vector<Origin> origins;  // by node
  Program program;
  MemoryPlan plan;
  FusionPlan regions;

  std::int64_t bytes() const { return plan.total_bytes(); }
};

class Rematerializer {
 public:
  explicit Rematerializer(const Compilation& from) : from_(from), budget_(*from.request.lower.memory) {}

  BudgetFit fit() {
    const Attempt now = search();
    return {.fits = now.bytes() <= budget_.bytes, .bytes = now.bytes()};
  }

  void run(Compilation& result) {
    Attempt now = search();
    if (now.bytes() > budget_.bytes) fail(now);
    result.recomputed = copies_among(now.graph, now.origins);
    result.recomputed_kinds = std::move(recomputed_);
    result.graph = std::move(now.graph);
  }

 private:
  static NodeMap<bool> copies_among(const Graph& graph, const std::vector<Origin>& origins) {
    NodeMap<bool> copies(graph);
    for (const ValueId id : all_values(graph)) copies[id] = origins[id.index].copy;
    return copies;
  }

  /// Returns the first attempt that fits, or the smallest one.
  Attempt search() {
    const Graph& graph = from_.graph;
    std::vector<Origin> origins;
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) origins.push_back({i, false});
    Attempt now = attempt(graph, std::move(origins));
    for (const ValueId id : all_values(graph)) sums_.push_back(how_summed(now.graph, now.regions, id));
    while (now.bytes() > budget_.bytes) {
      auto next = improve(now);
      if (!next) break;
      now = std::move(*next);
    }
    return now;
  }

  Attempt attempt(Graph graph, std::vector<Origin> origins) const {
    const LowerOptions& options = from_.request.lower;
    FusionPlan regions = fuse_regions(graph, from_.machine, options, copies_among(graph, origins));
    Program program = make_kernels(graph, regions, from_.machine, options, *from_.pool);
    order_collectives(program, options.bucket_bytes);
    MemoryPlan plan = plan_memory(program, budget_.dims, budget_.threads);
    return {std::move(graph), std::move(origins), std::move(program), std::move(plan), std::move(regions)};
  }

  /// Whether every sum, including copies, is computed as in the graph without copies.
  bool sums_as_before(const Attempt& attempt) const {
    for (const ValueId id : all_values(attempt.graph)) {
      const Origin& origin = attempt.origins[id.index];
      if (how_summed(attempt.graph, attempt.regions, id) != sums_[origin.node]) return false;
    }
    return true;
  }

  /// Copies the best kind that has not been tried and does not raise the peak.
  std::optional<Attempt> improve(const Attempt& now) {
    for (const RematCandidate& kind : remat_candidates(now.graph, now.regions, peak_region(now), budget_.dims)) {
      if (!tried_.insert(kind.key).second) continue;
      std::vector<std::vector<ValueId>> copies;
      Graph graph = recompute(now.graph, kind.copies, &copies);
      std::vector<Origin> origins = origins_of(now.origins, graph, kind.copies, copies);
      Attempt next = attempt(dce(std::move(graph)), std::move(origins));
      if (next.bytes() > now.bytes() || !sums_as_before(next)) continue;
      recomputed_.push_back({kind.key, static_cast<int>(kind.copies.size()), next.bytes()});
      return next;
    }
    return std::nullopt;
  }

  /// Returns the region of the launch at the peak.
  static int peak_region(const Attempt& now) {
    const int peak = now.plan.peak_launch;
    return peak < 0 ? 0 : now.program.launches[peak].info.region;
  }

  /// Returns the old origins with those of the copies inserted, without nodes that are no longer read.
  static std::vector<Origin> origins_of(const std::vector<Origin>& old, const Graph& graph,
                                        const std::vector<Recomputation>& wanted,
                                        const std::vector<std::vector<ValueId>>& copies) {
    const NodeMap<bool> needed = needed_nodes(graph);
    NodeMap<int> copied(graph, -1);  // the node that it is a copy of, in the graph without copies
    for (std::size_t w = 0; w < wanted.size(); ++w)
      for (std::size_t v = 0; v < wanted[w].values.size(); ++v)
        if (copies[w][v].valid()) copied[copies[w][v]] = old[wanted[w].values[v].index].node;
    std::vector<Origin> result;
    std::size_t next = 0;
    for (const ValueId id : all_values(graph)) {
      const Origin origin = copied[id] >= 0 ? Origin{copied[id], true} : old[next++];
      if (needed[id]) result.push_back(origin);
    }
    LATHE_ASSERT(next == old.size());
    return result;
  }

  [[noreturn]] void fail(const Attempt& least) const {
    throw UserError(
        fmt::format("@{} does not fit a memory budget of {}: with all that can be computed again it takes {} ({} of "
                    "arguments, states and results, {} of arena)",
                    least.graph.name, format_bytes(budget_.bytes), format_bytes(least.bytes()),
                    format_bytes(least.plan.argument_bytes), format_bytes(least.plan.arena_bytes)),
        "memory_budget",
        fmt::format("{} bytes are the least; a smaller batch or sequence needs less{}", least.bytes(), loop_hint()));
  }

  /// Returns advice about loops. Segments that the user sets also add up the gradients of weights, in another order.
  std::string loop_hint() const {
    if (from_.loops.empty()) return "";
    std::string hint = ". LoopOptions::checkpoint_every saves more than a budget, with other roundings";
    for (const LoopDecision& each : from_.loops)
      if (each.every == 0) hint += fmt::format("; {} does not run again: {}", each.what, each.left_alone);
    return hint;
  }

  const Compilation& from_;
  const MemoryBudget& budget_;
  std::vector<std::string> sums_;  // by node of the graph without copies: how_summed
  std::set<std::string> tried_;
  std::vector<RecomputedKind> recomputed_;
};

}  // namespace

void require_budget_sizes(const Compilation& now) {
  const std::vector<std::string> missing = unbound_dims(now.graph, now.request.lower.memory->dims);
  if (!missing.empty())
    throw UserError(fmt::format("a memory budget is judged at one size of each dim of @{}: {} {} none",
                                now.graph.name, fmt::join(missing, ", "), missing.size() == 1 ? "has" : "have"),
                    "memory_dims", "give their sizes with the budget");
}

void fit_budget(Compilation& now) {
  require_budget_sizes(now);
  Rematerializer(now).run(now);
}

BudgetFit try_budget(const Compilation& now) {
  require_budget_sizes(now);
  return Rematerializer(now).fit();
}

}  // namespace lathe
