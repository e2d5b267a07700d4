#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/rules/operand_rules.h"

/// What the records of composite ops have in common.
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

/// The dtype that composites compute in: f32 for bf16 and f16, any other itself.
inline DType compute_dtype(DType dtype) { return dtype == bf16 || dtype == f16 ? f32 : dtype; }
/// The value in the dtype that composites compute in.
inline Value upcast(const Value& a) { return cast(a, compute_dtype(a.dtype())); }

/// "the mask (m: i64[2, 3])": an operand by what it is for and by its name and type.
std::string describe_role(const InferContext& ctx, int operand, std::string_view role);

/// a / size and a * size for a size that may be unknown until the dims are bound.
Value div_size(const Value& a, const Dim& size);
Value mul_size(const Value& a, const Dim& size);

/// The product of some dims of a shape.
Dim extent(const Shape& shape, const std::vector<int>& axes);

/// sum and max over sorted positions; none at all leaves `a` as it is.
Value sum_over(const Value& a, const std::vector<int>& axes, bool keepdim);
/// The mean over sorted positions, kept as size 1.
Value mean_keep(const Value& a, const std::vector<int>& axes);

/// A reduced value with its dims put back as size 1.
Value restore_dims(const Value& reduced, const std::vector<int>& axes, bool keepdim);

/// A row of scores with its maximum taken away, which no gradient sees: exp cannot overflow.
/// A row of only -inf gives NaN, as PyTorch's.
Value less_row_max(const Value& a, int dim);

/// Samples of one operand, one attribute set each: a matrix, dims of size 1 and of size 0.
std::vector<Sample> unary_composite_samples(const Attributes& attrs, double low = -2, double high = 2);

}  // namespace lathe::ir
