#pragma once

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/program.h"

namespace lathe {

/// Turns a graph of primitives (after ir::default_pipeline: no composites, no complex values) into kernels:
/// prepare_for_fusion, plan_fusion, and a schedule for each region.
Program lower(const ir::Graph& graph, const VectorTarget& target);

/// Gives the program's slots the types of the graph before ir::decompose_complex: a complex argument or output holds
/// the same bytes as the pairs of reals that the program works on.
void set_user_types(Program& program, const ir::Graph& given);

}  // namespace lathe
