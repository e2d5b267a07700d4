#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/check_results.h"

/// Compares compiled graphs, and their kernels in the kernel interpreter, with the reference interpreter.
namespace lathe::test {

/// Reads IR text and verifies it.
ir::Graph parse(std::string_view text);

struct CheckOptions {
  std::vector<DimBindings> sizes = {{}};  ///< the graph is compiled once and run with each
  double tolerance = 1e-12;
  unsigned seed = 1;
  std::int64_t top = 2;           ///< the largest integer in the arguments
  bool interpret_kernels = true;  ///< also runs the kernels in the kernel interpreter, for vectors of 128 to 512 bits
  ObjectStore* store = nullptr;
};
/// Compiles a graph and compares results, errors and states of its runs with the reference interpreter.
void check_compiled(const ir::Graph& graph, const CheckOptions& options = {});
/// The same for IR text; equal kernels of all calls are compiled once.
void check(std::string_view text, CheckOptions options = {});
/// Sizes for graphs with one symbolic dim: several, one, none, and more than a vector.
inline const std::vector<DimBindings> n_sizes = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}};

}  // namespace lathe::test
