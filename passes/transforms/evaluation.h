#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// A graph as it is evaluated, not trained: dropout passes its operand on, and a random state that nothing but
/// dropout reads is no argument any more.
///
///   %2 = dropout %1, %rng {p=0.1, stream=0}           ->    %1
Graph evaluation(const Graph& graph);

}  // namespace lathe::ir
