#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Complex values become pairs of reals in a new last dim, so that no emitter sees a complex number:
///   c64[n, d] -> f32[n, d, 2]
/// view_as_complex and view_as_real become nothing; products are computed by parts; composites that take or give
/// complex values are expanded first.
///
/// The signature: a complex argument or output of the graph keeps its name and its bytes (real and imaginary parts
/// side by side are what a complex buffer holds), but not its type, which is now the pair's. So a caller takes the
/// types that the user sees from the graph before this pass, and binds the same buffers to the graph after it. A
/// graph without complex values is returned as it is.
Graph decompose_complex(Graph graph);

}  // namespace lathe::ir
