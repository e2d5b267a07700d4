#pragma once

#include <string>

#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"

/// Random arguments for any graph, and comparison of results.
namespace lathe::test {

/// Returns values for every argument: floats in [-2, 2], booleans, integers from 0 to `top`; deterministic by seed.
Tensors random_arguments(const ir::Graph& graph, const DimBindings& dims = {}, unsigned seed = 1,
                         std::int64_t top = 2);

/// Returns the largest difference, relative to the larger of 1 and the largest value; infinite if dtypes, shapes or
/// the positions of NaNs and infinities differ.
double error_of(const HostTensor& found, const HostTensor& expected);

/// Whether both have the same bits.
bool same_bits(const HostTensor& a, const HostTensor& b);

/// The outcome of a run: results, or the label of the error ("InternalError: ..." for an internal one).
struct Outcome {
  Tensors results;
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

/// Formats "n=2 m=3".
std::string to_string(const DimBindings& dims);

}  // namespace lathe::test
