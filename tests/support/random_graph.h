#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir::test {

/// The sizes of the unknown dims of random graphs.
inline const DimBindings random_graph_dims = {{"n", 2}, {"m", 3}};

/// A valid graph of about `ops` ops over f64 inputs with known and unknown dims: element-wise ops, views, reductions,
/// products, joins, masks, composites, and things that a rewrite should like (x * 1, -(-x), pads that fit). Outputs:
/// "loss", a scalar that depends on the last values, and those values. The same for the same seed.
Graph random_graph(unsigned seed, int ops);

}  // namespace lathe::ir::test
