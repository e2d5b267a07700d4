#pragma once

#include "frontend/ops/derived_ops.h"

namespace lathe::importing {

/// Returns the norm of any order over axes: (sum |x|^order)^(1 / order), the number of elements that are not 0 for
/// order 0, and the largest or smallest size for orders of infinity and -infinity. Zeros have no gradient.
Tensor vector_norm(const Tensor& x, double order, const Axes& axes, bool keeps_dims);

}  // namespace lathe::importing
