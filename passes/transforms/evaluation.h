#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the graph for evaluation instead of training: dropout returns its operand, and a random state that only
/// dropout reads is no longer an argument.
///
///   %2 = dropout %1, %rng {p=0.1, stream=0}           ->    %1
Graph evaluation(const Graph& graph);

}  // namespace lathe::ir
