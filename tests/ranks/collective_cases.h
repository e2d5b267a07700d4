#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"
#include "runtime/executable.h"
#include "runtime/ranks/ranks.h"

/// One collective of each kind, dtype and way to lie, as the graph of one of several processes along the axis m.
namespace lathe::test {

struct CollectiveCase {
  std::string op;
  ir::Graph graph;  ///< input x -> output y
  std::vector<std::int64_t> sizes;
  DType dtype = f32;
};

/// For three processes.
std::vector<CollectiveCase> collective_cases();

/// What a process gives.
HostTensor operand_of(const CollectiveCase& collective, int rank);
/// What it gets, by code compiled with these options.
HostTensor run_collective(const CollectiveCase& collective, const std::shared_ptr<Ranks>& ranks,
                          CompileOptions options = {});

}  // namespace lathe::test
