#pragma once

#include "passes/lowering/operands/along_dim.h"

namespace lathe {

/// A linear_recurrence in the form that schedules use: h[t] = a[t] * h[t-1] + b[t] at [pre.., t, post..]. The state h
/// is an f64, so that the factors near 1 of long sequences lose nothing.
struct Recurrence {
  Recurrence(const LoweringContext& lowering, ir::ValueId id);

  AlongDim factors;      ///< of a; sizes and dims are those of b as well
  OperandProgram terms;  ///< of b
  bool reverse;          ///< starts at the last t
};

/// A function h -> factor * h + term, in f64: several steps in one.
struct LinearStep {
  kernel::Value factor, term;
};

/// Returns the function that applies `first`, then `second`. A term of 0 stays 0 if the factor is infinite, because
/// the product of many factors may overflow where the state that they multiply is 0.
LinearStep composed(kernel::Builder& b, const LinearStep& first, const LinearStep& second);
/// Returns the state after the step.
kernel::Value applied(kernel::Builder& b, const LinearStep& step, kernel::Value state);

}  // namespace lathe
