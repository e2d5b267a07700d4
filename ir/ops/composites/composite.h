#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/rules/operand_rules.h"

/// Helpers for the records of composite ops.
namespace lathe::ir {

using Expansion = Value (*)(GraphBuilder&, const Node&, std::span<const Value>);

constexpr Op composite(std::string_view name, std::string_view doc, Arity arity, MixedPrecision precision,
                       std::span<const AttrSpec> attrs, std::span<const std::string_view> labels,
                       TensorType (*infer)(const InferContext&), Expansion expand, Gradient gradient,
                       std::vector<Sample> (*samples)()) {
  return Op{.name = name,
            .doc = doc,
            .arity = arity,
            .attrs = attrs,
            .labels = labels,
            .infer = infer,
            .meaning = Composite{expand},
            .precision = precision,
            .gradient = gradient,
            .samples = samples};
}

/// Returns the dtype that composites compute in: f32 for bf16 and f16, otherwise the dtype itself.
inline DType compute_dtype(DType dtype) { return dtype == bf16 || dtype == f16 ? f32 : dtype; }
/// Casts the value to the dtype that composites compute in.
inline Value upcast(const Value& a) { return cast(a, compute_dtype(a.dtype())); }

/// Describes an operand by its role, name and type: "the mask (m: i64[2, 3])".
std::string describe_role(const InferContext& ctx, int operand, std::string_view role);

/// Returns a / size and a * size for a size that may be unknown until the dims are bound.
Value div_size(const Value& a, const Dim& size);
Value mul_size(const Value& a, const Dim& size);

/// Returns the product of some dims of a shape.
Dim extent(const Shape& shape, const std::vector<int>& axes);

/// Returns the sum over sorted positions; without positions, returns `a`.
Value sum_over(const Value& a, const std::vector<int>& axes, bool keepdim);
/// Returns the mean over sorted positions, kept as size 1.
Value mean_keep(const Value& a, const std::vector<int>& axes);

/// Restores the dims of a reduced value as size 1.
Value restore_dims(const Value& reduced, const std::vector<int>& axes, bool keepdim);

/// Subtracts the row maximum, without a gradient through it, so that exp cannot overflow. A row of only -inf gives
/// NaN, as in PyTorch.
Value less_row_max(const Value& a, int dim);

/// Returns samples of one operand with these attributes: a matrix, dims of size 1 and of size 0.
std::vector<Sample> unary_composite_samples(const Attributes& attrs, double low = -2, double high = 2);

}  // namespace lathe::ir
