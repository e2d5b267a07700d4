#pragma once

#include "passes/lowering/lower.h"

namespace lathe {

/// lower() for CPUs: one kernel for each region, its parallel loops shared by threads, its inner ones in vectors.
Program lower_cpu(const ir::Graph& graph, const VectorTarget& target, const LowerOptions& options = {});

/// What decides on such a CPU which attentions are fused, unless it is said.
AttentionCosts attention_costs(const VectorTarget& target);

/// What a CPU makes of regions.
Schedules cpu_schedules(AttentionCosts costs);

}  // namespace lathe
