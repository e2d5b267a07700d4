#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe::bench {

/// Graphs of one shape at increasing sizes.
struct ScalingCase {
  std::string name;
  std::string what;  ///< unit of the size
  std::vector<int> sizes;
  std::function<ir::Graph(int size)> graph;
  /// Inputs of a run; empty: the graph is only compiled.
  std::function<Tensors(int size)> inputs = {};
};

/// Returns training steps of deep models, an unrolled loop over time, and worst-case graph shapes: one long chain, a
/// value that everything reads, a deep tree, many parameters.
std::vector<ScalingCase> scaling_cases();

}  // namespace lathe::bench
