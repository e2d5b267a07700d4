#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/run_with_states.h"

/// Graphs as machine code, and their kernels in the kernel interpreter, against the reference interpreter.
namespace lathe::test {

/// Reads IR text and verifies it.
ir::Graph parse(std::string_view text);

/// Checks every expected tensor.
void check_close(const ir::Tensors& found, const ir::Tensors& expected, double tolerance);

/// Checks that both fail alike, or give the same results.
void check_same(const Outcome& found, const Outcome& expected, double tolerance);

struct CheckOptions {
  std::vector<DimBindings> sizes = {{}};  ///< the graph is compiled once and run with each
  double tolerance = 1e-12;
  unsigned seed = 1;
  std::int64_t top = 2;  ///< the largest integer in the arguments
  bool interpret_kernels =
      true;  ///< run the kernels in the kernel interpreter as well, for vectors of 128 to 512 bits
  codegen::ObjectStore* store = nullptr;
};
/// Compiles a graph and compares its runs, in every sense, with the reference interpreter.
void check_compiled(const ir::Graph& graph, const CheckOptions& options = {});

}  // namespace lathe::test
