#pragma once

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/options.h"
#include "passes/lowering/program.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

/// What one kind of machine makes of regions, and of a copy of one program buffer to another.
struct Schedules {
  std::vector<KernelContext::Built> (*region)(const LoweringContext&, const Region&);
  KernelContext::Built (*copy)(const VectorTarget&, DType, int from, int to, const Dim& elements);
  FusionOptions fusion = {};  ///< regions that it can make something of
};
/// Turns a graph of primitives (after ir::default_pipeline: no composites, no complex values) into kernels:
/// prepare_for_fusion, recompute_attention, plan_fusion, and a schedule for each region. Throws UserError
/// [attention_unfused] for the first softmax of an attention that is not fused where that is required, and those of
/// lower_within where there is a memory budget.
Program lower(const ir::Graph& graph, const VectorTarget& target, const Schedules& schedules,
              const LowerOptions& options);

}  // namespace lathe
