#pragma once

#include <string>

#include "ir/tensor/graph.h"
#include "passes/lowering/machine.h"

namespace lathe {

/// Describes the effect of a memory budget on a graph: the memory without and with it, the kinds of values that are
/// recomputed in order of the decisions, and the work and memory traffic per run. Throws the UserErrors of
/// fit_budget().
///
///   @gpt with B=4, T=64: 1.73 GiB, 345 MiB of it arena
///   within a budget of 1.6 GiB: 1.58 GiB, 192 MiB of it arena
///   computed again for the backward pass, and what all takes then:
///     1.66 GiB  tanh f32[B, T, d_ff=3072] gpt.cpp:83, 12 values
///   that costs 0.0% more products and sums (258.2 -> 258.2 GFLOP), 3.1% more traffic (14.1 -> 14.5 GB) a run
std::string explain_memory(const ir::Graph& graph, const Machine& machine, const MemoryBudget& budget,
                           LowerOptions options = {});

}  // namespace lathe
