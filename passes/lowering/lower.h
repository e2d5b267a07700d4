#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/lower_options.h"
#include "passes/lowering/lowered.h"
#include "passes/lowering/machine.h"
#include "passes/lowering/pool/kernel_pool.h"

/// From a prepared graph to a program of kernels. passes/compile/compile.h runs these in order, with all passes
/// before.
namespace lathe {

/// The costs by which attentions are fused or not: those of the machine for AttentionFusion::automatic, otherwise
/// none. A memory budget must not change bits, so it has no influence.
std::optional<CpuInfo> attention_costs(const Machine& machine, const LowerOptions& options);

/// Partitions a prepared graph into regions that the machine has schedules for. `recomputed`: FusionOptions. Throws
/// UserError [one_process] for a graph with collectives on a machine that has none.
FusionPlan fuse_regions(const ir::Graph& prepared, const Machine& machine, const LowerOptions& options,
                        const std::vector<bool>& recomputed = {});

/// Makes the kernels of all regions, with collectives where they are in the graph's order. `pool` has the kernels
/// that were made for other versions of the graph with the same machine and options.
Program make_kernels(const ir::Graph& graph, const FusionPlan& regions, const Machine& machine,
                     const LowerOptions& options, KernelPool& pool);

}  // namespace lathe
