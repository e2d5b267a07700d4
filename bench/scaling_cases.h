#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe::bench {

/// Graphs of one shape in growing sizes.
struct ScalingCase {
  std::string name;
  std::string what;  ///< what the size counts
  std::vector<int> sizes;
  std::function<ir::Graph(int size)> graph;
  /// Inputs of a run; empty: the graph is compiled alone.
  std::function<Tensors(int size)> inputs = {};
};

/// Training steps of deep models, an unrolled loop over time, and the worst cases of a graph's shape: one long chain,
/// a value that everything reads, a deep tree, many parameters.
std::vector<ScalingCase> scaling_cases();

}  // namespace lathe::bench
