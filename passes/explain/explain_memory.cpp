#include "passes/explain/explain_memory.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/support/visible.h"
#include "passes/compile/compilation.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/program_loops.h"

namespace lathe {

namespace {

/// Memory and work of one run of a program.
struct Cost {
  std::int64_t bytes = 0, arena = 0;
  double flops = 0, traffic = 0;
};

Cost cost_of(const Program& program, const MemoryBudget& budget) {
  const MemoryPlan plan = plan_memory(program, budget.dims, budget.threads);
  Cost cost{.bytes = plan.total_bytes(), .arena = plan.arena_bytes};
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    const Launch& launch = program.launches[l];
    if (is_skipped(program, launch, budget.dims)) continue;
    const auto runs = static_cast<double>(runs_of(program, static_cast<int>(l)).evaluate(budget.dims));
    cost.flops += runs * static_cast<double>(launch.flops.evaluate(budget.dims));
    cost.traffic += runs * static_cast<double>(launch.bytes.evaluate(budget.dims));
  }
  return cost;
}

std::string memory_text(const Cost& cost) {
  return fmt::format("{}, including an arena of {}", format_bytes(cost.bytes), format_bytes(cost.arena));
}

double percent_more(double before, double after) { return before > 0 ? 100 * (after / before - 1) : 0; }

/// Describes the decisions about loops.
std::string loops_text(const std::vector<LoopDecision>& loops) {
  std::string text, left_alone;
  for (const LoopDecision& each : loops) {
    if (each.every == 0)
      left_alone += fmt::format("  {}: {}\n", each.what, each.left_alone);
    else
      text += fmt::format("  {:>9}  {}: {} of {} iterations at a time; {} of saved values become {}\n",
                          format_bytes(each.bytes_together), each.what, each.every, each.trips,
                          format_bytes(each.saved), format_bytes(each.kept));
  }
  if (!text.empty()) text = "loops that run again for their gradients, and the total memory after each:\n" + text;
  return left_alone.empty() ? text : text + "loops that do not run again:\n" + left_alone;
}

std::string with_dims(const DimBindings& dims) {
  std::vector<std::string> texts;
  for (const auto& [name, size] : dims) texts.push_back(fmt::format("{}={}", name, size));
  return texts.empty() ? "" : fmt::format(" with {}", fmt::join(texts, ", "));
}

}  // namespace

std::string explain_memory(const ir::Graph& graph, const Machine& machine, const MemoryBudget& budget,
                           LowerOptions options) {
  require_budget_support(machine);
  options.memory.reset();
  Compilation now = begin_compilation(graph, machine, {.lower = options});
  run_through(now, Stage::Part::target);
  Compilation limited = now;
  limited.request.lower.memory = budget;
  run_until(now, "collectives");
  run_until(limited, "collectives");
  const Program& within = limited.program;
  const Cost before = cost_of(now.program, budget), after = cost_of(within, budget);
  std::string text =
      fmt::format("@{}{}: {}\nwithin a budget of {}: {}\n", visible(graph.name), with_dims(budget.dims),
                  memory_text(before), format_bytes(budget.bytes), memory_text(after));
  text += loops_text(limited.loops);
  const bool runs_again = std::ranges::any_of(limited.loops, [](const LoopDecision& each) { return each.every > 0; });
  if (within.recomputed.empty() && !runs_again) return text + "nothing is recomputed\n";
  if (!within.recomputed.empty()) text += "recomputed for late uses, and the total memory after each:\n";
  for (const RecomputedKind& kind : within.recomputed)
    text += fmt::format("  {:>9}  {}, {} value{}\n", format_bytes(kind.bytes_together), kind.what, kind.values,
                        kind.values == 1 ? "" : "s");
  return text + fmt::format(
                    "cost per run: {:.1f}% more arithmetic ({:.4g} -> {:.4g} GFLOP), {:.1f}% more memory traffic "
                    "({:.4g} -> {:.4g} GB)\n",
                    percent_more(before.flops, after.flops), before.flops * 1e-9, after.flops * 1e-9,
                    percent_more(before.traffic, after.traffic), before.traffic * 1e-9, after.traffic * 1e-9);
}

}  // namespace lathe
