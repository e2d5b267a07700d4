#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/lowering/lower_options.h"
#include "passes/lowering/machine.h"
#include "passes/shard/mesh.h"
#include "passes/shard/shard_options.h"

/// With a memory budget: whether gathered parameters are kept for the backward pass, which sends fewer bytes, or
/// gathered there again, which takes less memory.
namespace lathe {

/// What a process takes, arena, arguments and results, where nothing is computed again to fit `lowering.memory`,
/// which is given; more than any budget where the size of a dim is missing.
std::int64_t bytes_without_budget(const ir::Graph& local, const Machine& machine, LowerOptions lowering);

/// Whether the budget is to say so.
bool budget_chooses_gathers(const shard::ShardOptions& parts, const LowerOptions& lowering);

/// What a process of a mesh takes, among which `graph` is divided by splits and parts, where gathered parameters are
/// kept and nothing is computed again; `lowering.memory` has the sizes of all dims of a process. More than any budget
/// where the size of a dim is missing, which fit_budget() tells.
std::int64_t bytes_with_gathered_kept(const ir::Graph& graph, const shard::Mesh& mesh,
                                      const std::vector<shard::Split>& splits, const shard::ShardOptions& parts,
                                      const Machine& machine, const LowerOptions& lowering);

/// The same choice, with the bytes of both ways for people. Throws the UserErrors of fit_budget() where nothing
/// fits.
struct GatherChoice {
  shard::SecondGather second_gather;
  std::string why;
};
GatherChoice choose_gathers(const ir::Graph& graph, const shard::Mesh& mesh, const std::vector<shard::Split>& splits,
                            const shard::ShardOptions& parts, const Machine& machine, const LowerOptions& lowering);

}  // namespace lathe
