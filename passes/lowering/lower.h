#pragma once

#include <optional>
#include <vector>

#include "ir/options/lower_options.h"
#include "passes/lowering/lowered.h"
#include "passes/lowering/machine.h"
#include "passes/lowering/pool/kernel_pool.h"

/// Lowers a prepared graph to a program of kernels. passes/compile/compilation.h runs these functions in order, after
/// all graph passes.
namespace lathe {

/// Returns the costs that decide whether attention is fused: those of the hardware for AttentionFusion::automatic,
/// otherwise nullopt. A memory budget has no influence, because it must not change the bits of results.
std::optional<AttentionCostModel> attention_costs(const Machine& machine, const LowerOptions& options);

/// Partitions a prepared graph into regions that the hardware has schedules for. `recomputed`: see FusionOptions.
/// Throws UserError [one_process] for a graph with collectives if the machine does not support them.
FusionPlan fuse_regions(const ir::Graph& prepared, const Machine& machine, const LowerOptions& options,
                        const ir::NodeMap<bool>& recomputed = {});

/// Builds the kernels of all regions, and the collectives in graph order, and finishes the program for the machine.
/// `pool` holds kernels built for other versions of the graph with the same machine and options; they are reused.
Program make_kernels(const ir::Graph& graph, const FusionPlan& regions, const Machine& machine,
                     const LowerOptions& options, KernelPool& pool);

}  // namespace lathe
