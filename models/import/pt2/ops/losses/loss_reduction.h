#pragma once

#include "frontend/ops/losses.h"
#include "models/import/pt2/ops/aten_functions.h"

namespace lathe::pt2 {

/// Returns the argument `reduction`, a number of PyTorch's enum.
inline Reduction reduction_of(const OpCall& call) {
  const std::int64_t number = call.integer("reduction", 1);
  if (number < 0 || number > 2) call.fail("the argument reduction is not 0, 1 or 2", "import_attribute");
  return number == 0 ? Reduction::none : number == 1 ? Reduction::mean : Reduction::sum;
}

inline Tensor reduced_by(Reduction reduction, const Tensor& losses) {
  return reduction == Reduction::none ? losses : reduction == Reduction::mean ? losses.mean() : losses.sum();
}

/// Reduces the losses of the elements by the argument `reduction`.
inline Results reduced_loss(const OpCall& call, const Tensor& losses) {
  return {reduced_by(reduction_of(call), losses)};
}

}  // namespace lathe::pt2
