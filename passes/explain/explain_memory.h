#pragma once

#include <string>

#include "ir/tensor/graph.h"
#include "passes/lowering/machine.h"

namespace lathe {

/// Describes the effect of a memory budget on a graph: the memory without and with it, the loops that run again and
/// those that do not, with the reason, the kinds of values that are recomputed, both in order of the decisions, and
/// the work and memory traffic per run. Throws the UserErrors of fit_budget().
///
///   @gpt with B=4, T=64: 1.73 GiB, including an arena of 345 MiB
///   within a budget of 1.6 GiB: 1.58 GiB, including an arena of 192 MiB
///   recomputed for late uses, and the total memory after each:
///     1.66 GiB  tanh f32[B, T, d_ff=3072] gpt.cpp:83, 12 values
///   cost per run: 0.0% more arithmetic (258.2 -> 258.2 GFLOP), 3.1% more memory traffic (14.1 -> 14.5 GB)
std::string explain_memory(const ir::Graph& graph, const Machine& machine, const MemoryBudget& budget,
                           LowerOptions options = {});

}  // namespace lathe
