#pragma once

#include <string>

#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"

/// Values for the arguments of any graph, and how results are compared.
namespace lathe::test {

/// Values for every argument: floats in [-2, 2], booleans, integers from 0 to `top`; the same for the same seed.
Tensors random_arguments(const ir::Graph& graph, const DimBindings& dims = {}, unsigned seed = 1,
                         std::int64_t top = 2);

/// The largest difference, relative to the larger of 1 and the largest value; infinite where dtypes, shapes or the
/// positions of NaNs and infinities differ.
double error_of(const HostTensor& found, const HostTensor& expected);

/// Whether both hold the same bits.
bool same_bits(const HostTensor& a, const HostTensor& b);

/// What a way of running gives: results, or the label of the error ("InternalError: ..." for one of ours).
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

/// "n=2 m=3"
std::string to_string(const DimBindings& dims);

}  // namespace lathe::test
