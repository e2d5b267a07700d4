#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Replaces complex values by pairs of reals in a new last dim, so that no emitter handles complex numbers:
///   c64[n, d] -> f32[n, d, 2]
/// view_as_complex and view_as_real are removed; products are computed by parts; composites with complex operands or
/// results are expanded first.
///
/// The signature: a complex argument or output of the graph keeps its name and its bytes (a complex buffer holds real
/// and imaginary parts next to each other). Its type becomes that of the pair. Callers take the types that the user
/// sees from the graph before this pass, and bind the same buffers to the graph after it. A graph without complex
/// values is returned unchanged.
Graph decompose_complex(Graph graph);

}  // namespace lathe::ir
