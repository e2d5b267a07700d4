#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the graph, with the bodies of its loops, for certain sizes: named dims in `sizes` become numbers, which
/// keep their names in dumps; others remain unknown. Passes that choose by size then know them, and the program runs
/// only at these sizes. Throws the UserErrors of rules and run-time checks that these sizes violate, and
/// [dim_negative].
///
///   input %x: f32[B, T, 64]; %1 = view %x {shape=[B*T, 64]}
///   ->  input %x: f32[B=4, T, 64]; %1 = view %x {shape=[4*T, 64]}         for {B: 4}
Graph with_sizes(const Graph& graph, const DimBindings& sizes);

}  // namespace lathe::ir
