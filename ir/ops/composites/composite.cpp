#include "ir/ops/composites/composite.h"

#include <fmt/core.h>

namespace lathe::ir {

/// Reads an unknown size n from element n of an iota of n + 1 elements. This is a view, so nothing is stored.
Value dim_value(GraphBuilder& b, const Dim& size, DType dtype) {
  if (const auto number = size.value()) return constant(b, *number, dtype);
  return cast(select(iota(b, {size.unnamed() + 1}, 0, i64), 0, size.unnamed()), dtype);
}

std::string describe_role(const InferContext& ctx, int operand, std::string_view role) {
  return fmt::format("the {} ({})", role, rules::describe(ctx, operand));
}

Value div_size(const Value& a, const Dim& size) {
  if (const auto number = size.value()) return div(a, *number);
  return div(a, dim_value(a.builder(), size, a.dtype()));
}

Value mul_size(const Value& a, const Dim& size) {
  if (const auto number = size.value()) return mul(a, *number);
  return mul(a, dim_value(a.builder(), size, a.dtype()));
}

Dim extent(const Shape& shape, const std::vector<int>& axes) {
  Dim product(1);
  for (const int axis : axes) product = product * shape[axis].unnamed();
  return product;
}

Value sum_over(const Value& a, const std::vector<int>& axes, bool keepdim) {
  if (axes.empty()) return a;
  return sum(a, std::vector<std::int64_t>(axes.begin(), axes.end()), keepdim);
}

Value mean_keep(const Value& a, const std::vector<int>& axes) {
  const Dim count = extent(a.shape(), axes);
  return div_size(sum_over(a, axes, true), count);
}

Value restore_dims(const Value& reduced, const std::vector<int>& axes, bool keepdim) {
  if (keepdim) return reduced;
  Value result = reduced;
  for (const int axis : axes) result = unsqueeze(result, axis);
  return result;
}

Value less_row_max(const Value& a, int dim) { return sub(a, stop_gradient(max(a, {dim}, true))); }

std::vector<Sample> unary_composite_samples(const Attributes& attrs, double low, double high) {
  std::vector<Sample> samples;
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{3, 4}, {2, 1}, {1, 1, 3}, {0, 3}})
    samples.push_back({.operands = {{sizes, f64, low, high}}, .attrs = attrs});
  return samples;
}

}  // namespace lathe::ir
