#pragma once

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/graph.h"

namespace lathe::test {

/// Returns the factor of a graph's tolerance: the gradient of eigenvectors divides by differences of eigenvalues,
/// which are small for random matrices.
inline double amplified_errors(const ir::Graph& graph) {
  for (const ir::ValueId id : ir::all_values(graph))
    if (graph[id].op == &ir::ops::eigenvectors) return 100;
  return 1;
}

}  // namespace lathe::test
