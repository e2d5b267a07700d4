#include "passes/compile/fit_loops.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "ir/support/visible.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/verifier.h"
#include "passes/compile/fit_budget.h"
#include "passes/compile/sum_kinds.h"
#include "passes/remat/choose_segments.h"

namespace lathe {

using namespace ir;

namespace {

class LoopFitter {
 public:
  explicit LoopFitter(Compilation& now) : now_(now), dims_(now.request.lower.memory->dims) {}

  void run() {
    const std::vector<SegmentChoice> choices = find_choices();
    if (choices.empty()) return;
    best_ = try_budget(now_);
    if (!best_.fits) sums_ = kinds_of(now_.graph);
    Graph graph = now_.graph;
    for (const SegmentChoice& choice : choices) {
      LoopDecision decision = decision_of(choice.loops.pair, choice.trips);
      if (best_.fits)
        decision.left_alone = "the budget is met without it";
      else
        decide(choice, decision, graph);
      now_.loops.push_back(std::move(decision));
    }
    now_.graph = std::move(graph);
  }

 private:
  /// Rewrites one more loop, unless that does not help.
  void decide(const SegmentChoice& choice, LoopDecision& decision, Graph& graph) {
    chosen_.push_back(choice.loops);
    Compilation trial = now_;
    trial.graph = checkpoint_loops(now_.graph, chosen_);
    verify(trial.graph);
    if (kinds_of(trial.graph) != sums_) {
      decision.left_alone = "a sum would be computed by another kind of kernel";
    } else if (const BudgetFit fit = try_budget(trial); fit.bytes >= best_.bytes) {
      decision.left_alone = "the program would not take less memory";
    } else {
      best_ = fit;
      graph = std::move(trial.graph);
      decision.every = choice.loops.every;
      decision.saved = static_cast<std::int64_t>(choice.saved);
      decision.kept = static_cast<std::int64_t>(choice.kept);
      decision.bytes_together = fit.bytes;
    }
    if (decision.every == 0) chosen_.pop_back();
  }

  std::set<std::string> kinds_of(const Graph& graph) const {
    return sum_kinds(graph, now_.machine, now_.request.lower);
  }

  LoopDecision decision_of(const LoopPair& pair, std::int64_t trips) const {
    const Graph& around = pair.body ? pair.body->graph() : now_.graph;
    const Node& loop = around[pair.saver];
    return {.what = fmt::format("@{} {}", visible(loop_body(loop).graph().name), loop.loc.place()),
            .trips = trips,
            .left_alone = pair.left_alone};
  }

  /// Returns the loops that can be rewritten, best first. Adds decisions about the others.
  std::vector<SegmentChoice> find_choices() {
    std::vector<SegmentChoice> choices;
    for (const LoopPair& pair : find_loop_pairs(now_.graph)) {
      const Graph& around = pair.body ? pair.body->graph() : now_.graph;
      LoopDecision decision = decision_of(pair, loop_trips(around[pair.saver]).evaluate(dims_));
      if (decision.left_alone.empty()) {
        if (const auto choice = choose_segments(now_.graph, pair, dims_)) {
          choices.push_back(*choice);
          continue;
        }
        decision.left_alone = "checkpoints would take as much memory as the values";
      }
      now_.loops.push_back(std::move(decision));
    }
    std::ranges::stable_sort(choices, [](const SegmentChoice& a, const SegmentChoice& b) {
      return a.freed() * b.work > b.freed() * a.work;
    });
    return choices;
  }

  Compilation& now_;
  const DimBindings& dims_;
  BudgetFit best_;  // of the program with the chosen loops
  std::vector<LoopSegments> chosen_;
  std::set<std::string> sums_;  // without rewritten loops
};

}  // namespace

void fit_loops(Compilation& now) {
  require_budget_sizes(now);
  LoopFitter(now).run();
}

}  // namespace lathe
