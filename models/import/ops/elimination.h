#pragma once

#include "models/import/ops/tensor_functions.h"

namespace lathe::importing {

/// The results of an elimination of square matrices.
struct Eliminated {
  Tensor solution;             ///< [.., n, k]: NaN for singular matrices; empty without right sides
  Tensor sign, log_magnitude;  ///< of the determinants [..]: 0 and -inf for singular matrices
  Tensor determinant;          ///< [..]
};

/// Solves a x = b for a [.., n, n] and b [.., n, k] with the same dims in front, by Gauss-Jordan elimination with
/// pivots of the largest size in their columns. `b` may be empty. Computed in f64. Throws [import_operand].
Eliminated eliminate(const OpCall& call, const Tensor& a, const Tensor& b);

}  // namespace lathe::importing
