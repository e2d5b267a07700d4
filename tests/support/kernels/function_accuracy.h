#pragma once

#include <cmath>
#include <vector>

#include "ir/support/numbers/scalar_op.h"

namespace lathe::test {

/// The accuracy of compiled f32 functions that use their own polynomials: docs/kernel-ir.md.
struct FunctionAccuracy {
  ScalarOp op;
  double (*exact)(double);
  double most;  ///< maximum error in ulps of the exact result
};

/// Returns the accuracies of all unary transcendental scalar operations.
inline std::vector<FunctionAccuracy> f32_accuracies() {
  return {{ScalarOp::exp, std::exp, 1.0}, {ScalarOp::log, std::log, 0.8},  {ScalarOp::tanh, std::tanh, 1.3},
          {ScalarOp::erf, std::erf, 1.1}, {ScalarOp::sin, std::sin, 0.51}, {ScalarOp::cos, std::cos, 0.51}};
}

}  // namespace lathe::test
