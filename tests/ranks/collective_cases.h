#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"
#include "runtime/compile.h"
#include "runtime/ranks/ranks.h"

/// A collective of each kind, dtype and layout, as the graph of one of several ranks along the axis m.
namespace lathe::test {

struct CollectiveCase {
  std::string op;
  ir::Graph graph;  ///< input x -> output y
  std::vector<std::int64_t> sizes;
  DType dtype = f32;
};

/// Returns the cases for three ranks.
std::vector<CollectiveCase> collective_cases();

/// Returns the operand of a rank.
HostTensor operand_of(const CollectiveCase& collective, int rank);
/// Returns the result of a rank, from code compiled with these options.
HostTensor run_collective(const CollectiveCase& collective, const std::shared_ptr<Ranks>& ranks,
                          CompileOptions options = {});

}  // namespace lathe::test
