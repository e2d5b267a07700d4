#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the graph with simpler loops. The values of all results stay the same, to the bit.
///
///   - Loops over the same operands become one if their carries have equal next values: a loop and its second version
///     with more outputs, which autodiff adds.
///   - Outputs and carries that no result needs are dropped, and operands that the body does not read.
///   - A carry that does not change becomes an invariant.
///   - Values that are the same in all iterations are computed before the loop; numbers are moved into the body.
///   - Different bodies have different names.
Graph simplify_loops(Graph graph);

}  // namespace lathe::ir
