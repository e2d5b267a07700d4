#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/interpreter.h"
#include "runtime/executable.h"

/// Graphs as machine code, and their kernels in the kernel interpreter, against the reference interpreter.
namespace lathe::test {

/// Reads IR text and verifies it.
ir::Graph parse(std::string_view text);

/// Values for every argument: floats in [-2, 2], booleans, integers from 0 to `top`; the same for the same seed.
ir::Tensors random_arguments(const ir::Graph& graph, const DimBindings& dims = {}, unsigned seed = 1,
                             std::int64_t top = 2);

/// Runs with some arguments as inputs and the others as states: outputs by name, and every state after the run (as
/// the interpreter names them, where it gives them).
ir::Tensors run_with_states(Executable& executable, ir::Tensors arguments);

/// The largest difference, relative to the larger of 1 and the largest value; infinite where dtypes, shapes or the
/// places of NaNs and infinities differ.
double error_of(const HostTensor& found, const HostTensor& expected);

/// Checks every expected tensor.
void check_close(const ir::Tensors& found, const ir::Tensors& expected, double tolerance);

/// What a way of running gives: results, or the label of the error ("InternalError: ..." for one of ours).
struct Outcome {
  ir::Tensors results;
  std::string label;
};
template <class F>
Outcome outcome(F run) {
  try {
    return {run(), ""};
  } catch (const UserError& error) {
    return {{}, error.label()};
  } catch (const InternalError& error) {
    return {{}, std::string("InternalError: ") + error.what()};
  }
}

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
