#pragma once

#include <functional>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"
#include "passes/lowering/lowered.h"

namespace lathe {

/// How a prepared graph becomes regions, and those a program. `recomputed` marks the nodes that are copies.
struct LoweringSteps {
  std::function<FusionPlan(const ir::Graph&, const std::vector<bool>& recomputed)> plan;
  std::function<Program(const ir::Graph&, const FusionPlan&)> lower;
  double memory_work;  ///< of the machine: see CpuInfo
};

/// The graph and program of a graph (as plan_fusion takes it) that fits a budget, by computing values again just
/// before late readers instead of keeping them over the peak. Copies are made kind by kind (one op at one source
/// line, in all layers), what frees most bytes for its work first: element-wise values, norms and views before
/// products. After each kind the whole plan is made anew, and the kind is dropped where the peak rose. What is tried
/// does not depend on the budget, which only says where to stop: a smaller budget never takes more memory. The
/// results are the same bits as without a budget. Throws UserError [memory_budget], which tells the least that is
/// reached, and [memory_dims] for a dim without a value.
Lowered lower_within(const ir::Graph& graph, const MemoryBudget& budget, const LoweringSteps& steps);

}  // namespace lathe
