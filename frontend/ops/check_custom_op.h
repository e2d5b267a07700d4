#pragma once

#include <vector>

#include "frontend/ops/custom_op.h"

namespace lathe {

struct CustomOpChecks {
  /// Checks first and second derivatives against central differences, for samples in f64. Set it to false for a
  /// backward that intentionally is not the derivative, such as a straight-through estimator.
  bool gradients = true;
  unsigned seed = 1;  ///< for the operands' values
};

/// Checks an op on samples (default: those of its record): the forward against the reference, the result type against
/// the inference rule, strided operands, a round trip through text, and the derivatives. Throws UserError [op_check]
/// at the caller's line for the first sample that fails.
void check_custom_op(const CustomOp& op, std::vector<ir::Sample> samples = {}, const CustomOpChecks& checks = {},
                     Where at = Where::current());

}  // namespace lathe
