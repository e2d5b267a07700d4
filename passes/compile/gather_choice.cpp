#include "passes/compile/gather_choice.h"

#include <fmt/core.h>

#include <limits>

#include "ir/tensor/binding.h"
#include "passes/compile/compilation.h"
#include "passes/memory/memory_plan.h"
#include "passes/shard/shard.h"

namespace lathe {

using shard::SecondGather;

namespace {

/// Returns the bytes that a process needs for arena, arguments and results.
std::int64_t bytes_of(const Program& program, const MemoryBudget& sizes) {
  return plan_memory(program, sizes.dims, sizes.threads).total_bytes();
}

/// Shards the graph with the given handling of gathers.
ir::Graph divided(const ir::Graph& graph, const shard::Mesh& mesh, const std::vector<shard::Split>& splits,
                  shard::ShardOptions parts, SecondGather second) {
  parts.second_gather = second;
  return shard::shard(graph, mesh, splits, parts).graph;
}

}  // namespace

std::int64_t bytes_without_budget(const ir::Graph& local, const Machine& machine, LowerOptions lowering) {
  const MemoryBudget sizes = *lowering.memory;
  lowering.memory.reset();
  Compilation now = begin_compilation(local, machine, {.lower = lowering});
  run_through(now, Stage::Part::target);
  if (!ir::unbound_dims(now.graph, sizes.dims).empty()) return std::numeric_limits<std::int64_t>::max();
  run_until(now, "collectives");
  return bytes_of(now.program, sizes);
}

bool budget_chooses_gathers(const shard::ShardOptions& parts, const LowerOptions& lowering) {
  return lowering.memory && !parts.parameters.empty() && parts.second_gather == SecondGather::decide;
}

std::int64_t bytes_with_gathered_kept(const ir::Graph& graph, const shard::Mesh& mesh,
                                      const std::vector<shard::Split>& splits, const shard::ShardOptions& parts,
                                      const Machine& machine, const LowerOptions& lowering) {
  return bytes_without_budget(divided(graph, mesh, splits, parts, SecondGather::never), machine, lowering);
}

GatherChoice choose_gathers(const ir::Graph& graph, const shard::Mesh& mesh, const std::vector<shard::Split>& splits,
                            const shard::ShardOptions& parts, const Machine& machine, const LowerOptions& lowering) {
  const MemoryBudget& budget = *lowering.memory;
  const std::int64_t kept = bytes_with_gathered_kept(graph, mesh, splits, parts, machine, lowering);
  const ir::Graph gathers_again = divided(graph, mesh, splits, parts, SecondGather::always);
  const std::int64_t again = bytes_without_budget(gathers_again, machine, lowering);
  if (kept <= budget.bytes)
    return {SecondGather::never,
            fmt::format("gathered parameters are kept for the backward pass: this needs {} bytes per process; "
                        "gathering them again would need {} (budget: {} bytes)\n",
                        kept, again, budget.bytes)};
  std::string why = fmt::format(
      "parameters are gathered again for the backward pass: this needs {} bytes per process; keeping them would need "
      "{} (budget: {} bytes)\n",
      again, kept, budget.bytes);
  if (again > budget.bytes) {
    const Program program = compile_graph(gathers_again, machine, {.lower = lowering}).program;
    why += fmt::format("values are recomputed to fit the budget: a process then needs {} bytes\n",
                       bytes_of(program, budget));
  }
  return {SecondGather::always, std::move(why)};
}

}  // namespace lathe
