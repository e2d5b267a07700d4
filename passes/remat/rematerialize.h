#pragma once

#include <functional>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"
#include "passes/lowering/lowered.h"

namespace lathe {

/// How a prepared graph becomes regions, and regions a program. `recomputed` marks the nodes that are copies.
struct LoweringSteps {
  std::function<FusionPlan(const ir::Graph&, const std::vector<bool>& recomputed)> plan;
  std::function<Program(const ir::Graph&, const FusionPlan&)> lower;
  double memory_work;  ///< of the machine: see CpuInfo
};

/// Returns the graph and program of a graph (as plan_fusion accepts it) that fits a budget, by computing values again
/// just before late readers instead of keeping them over the peak. Copies are made for one kind at a time (one op at
/// one source line, in all layers), starting with the kind that frees most bytes for its work: elementwise values,
/// norms and views before matmuls. After each kind everything is planned again, and the kind is dropped if the peak
/// rose. The attempts do not depend on the budget, which only decides where to stop: a smaller budget never needs
/// more memory. The results are bit-identical to those without a budget. Throws UserError [memory_budget], which
/// gives the minimum that was reached, and [memory_dims] for a dim without a value.
Lowered lower_within(const ir::Graph& graph, const MemoryBudget& budget, const LoweringSteps& steps);

}  // namespace lathe
