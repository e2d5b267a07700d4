#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/mesh/mesh.h"
#include "ir/mesh/shard_options.h"
#include "ir/options/lower_options.h"
#include "passes/lowering/machine.h"

/// With a memory budget, decides whether gathered parameters are kept for the backward pass (fewer bytes sent) or
/// gathered again there (less memory).
namespace lathe {

/// Returns the bytes that a process needs for arena, arguments and results without recomputation. Requires
/// `lowering.memory`. Returns the maximum int64 if a dim is unbound.
std::int64_t bytes_without_budget(const ir::Graph& local, const Machine& machine, LowerOptions lowering);

/// Returns whether the memory budget decides about gathers.
bool budget_chooses_gathers(const shard::ShardOptions& parts, const LowerOptions& lowering);

/// Returns bytes_without_budget() of a process if `graph` is sharded over `mesh` and gathered parameters are kept.
/// `lowering.memory` must bind all dims of a process. fit_budget() reports dims that are missing.
std::int64_t bytes_with_gathered_kept(const ir::Graph& graph, const shard::Mesh& mesh,
                                      const std::vector<shard::Split>& splits, const shard::ShardOptions& parts,
                                      const Machine& machine, const LowerOptions& lowering);

/// The choice, and the bytes of both alternatives as text. Throws the UserErrors of fit_budget() if neither fits.
struct GatherChoice {
  shard::SecondGather second_gather;
  std::string why;
};
GatherChoice choose_gathers(const ir::Graph& graph, const shard::Mesh& mesh, const std::vector<shard::Split>& splits,
                            const shard::ShardOptions& parts, const Machine& machine, const LowerOptions& lowering);

}  // namespace lathe
