#pragma once

#include <vector>

#include "frontend/ops/custom_op.h"

namespace lathe {

struct CustomOpChecks {
  /// First and second derivatives against central differences, of samples in f64. A backward that is not the
  /// derivative on purpose, as that of a straight-through estimator, is left out by false.
  bool gradients = true;
  unsigned seed = 1;  ///< of the operands' values
};

/// Tries an op on samples, those of its record where none are given: the forward against the reference, its value
/// against the rule of its type, operands with other strides, its text read back, and its derivatives. Throws
/// UserError [op_check], at the caller's line, with the first sample that shows a fault and what is wrong.
void check_custom_op(const CustomOp& op, std::vector<ir::Sample> samples = {}, const CustomOpChecks& checks = {},
                     Where at = Where::current());

}  // namespace lathe
