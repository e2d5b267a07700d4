#include "models/import/ops/vector_norms.h"

#include <cmath>

namespace lathe::importing {

Tensor vector_norm(const Tensor& x, double order, const Axes& axes, bool keeps_dims) {
  if (order == 2) return x.norm(axes, keeps_dims);
  const Tensor size = x.abs();
  if (order == 1) return size.sum(axes, keeps_dims);
  if (order == 0) return (size != 0).to(x.dtype()).sum(axes, keeps_dims);
  if (std::isinf(order)) return order > 0 ? size.max(axes, keeps_dims) : size.min(axes, keeps_dims);
  // Elements of 0 have the gradient 0.
  const Tensor is_nothing = size == 0, power = where(is_nothing, 1, size).pow(order);
  const Tensor sum = where(is_nothing, std::pow(0.0, order), power).sum(axes, keeps_dims), is_zero = sum == 0;
  return where(is_zero, std::pow(0.0, 1 / order), where(is_zero, 1, sum).pow(1 / order));
}

}  // namespace lathe::importing
