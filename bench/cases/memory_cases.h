#pragma once

#include <string>
#include <vector>

#include "bench/memory_floor.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/interpret/interpreter.h"

namespace lathe::bench {

/// One op, forward or backward, as a graph over states, with its minimum memory traffic.
struct MemoryCase {
  ir::Graph graph;
  std::vector<Sweep> sweeps;
  Tensors inputs, states;
};

/// A named case builder. `rows` and `columns` are those of the tensor that the op works on (embedding: ids into a
/// table of 50257 rows; AdamW: a parameter of rows * columns).
struct MemoryOp {
  std::string name;
  MemoryCase (*make)(std::int64_t rows, std::int64_t columns);
};
const std::vector<MemoryOp>& memory_ops();

}  // namespace lathe::bench
