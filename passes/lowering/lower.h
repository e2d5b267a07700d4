#pragma once

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/program.h"

namespace lathe {

/// Turns a graph of primitives (after ir::default_pipeline: no composites, no complex values) into kernels:
/// prepare_for_fusion, plan_fusion, and a schedule for each region.
Program lower(const ir::Graph& graph, const VectorTarget& target);

}  // namespace lathe
