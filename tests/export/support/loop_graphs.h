#pragma once

#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe::test {

/// A graph with loops, and values for its arguments.
struct LoopGraph {
  std::string name;
  ir::Graph graph;
  Tensors arguments;
};

/// Returns graphs with loops in both directions, nested loops, loops without carries or sequences, and gradients.
std::vector<LoopGraph> loop_graphs(DType dtype);

}  // namespace lathe::test
