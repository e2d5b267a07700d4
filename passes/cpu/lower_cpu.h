#pragma once

#include "passes/lowering/lower.h"

namespace lathe {

/// lower() for CPUs: one kernel for each region, its parallel loops shared by threads, its inner ones in vectors.
Program lower_cpu(const ir::Graph& graph, const VectorTarget& target, const LowerOptions& options = {});

/// What decides on such a CPU which attentions are fused, unless it is said.
AttentionCosts attention_costs(const VectorTarget& target);

/// A CPU, whose attentions are fused as `costs` say.
Machine cpu_machine(const VectorTarget& target, AttentionCosts costs);
inline Machine cpu_machine(const VectorTarget& target) { return cpu_machine(target, attention_costs(target)); }

}  // namespace lathe
