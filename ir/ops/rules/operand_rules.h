#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/op.h"

/// What shape rules share: each helper checks one labelled constraint and speaks for the op that calls it.
/// The labels used here: dtype_kind, dtype_match, broadcast, dim_range, dim_repeat, dim_negative. An op lists those
/// it can raise.
namespace lathe::ir::rules {

/// Kinds of dtypes that an op takes; combine with |.
enum Kinds : unsigned { floats = 1, integers = 2, booleans = 4, complexes = 8, bytes = 16 };
inline constexpr unsigned reals = floats | integers;
inline constexpr unsigned numbers = reals | complexes;
inline constexpr unsigned anything = numbers | booleans | bytes;
bool is_kind(DType dtype, unsigned kinds);

/// "q: f32[B, n=3]" with the operand's name where it has one, "f32[B, n=3]" otherwise.
std::string describe(const InferContext& ctx, int operand);
/// What to call an operand in a sentence: its name, or "the operand" / "operand 1".
std::string operand_name(const InferContext& ctx, int operand);

/// Operand `operand` has one of the kinds of dtype [dtype_kind].
void require_kind(const InferContext& ctx, int operand, unsigned kinds);
/// Operands first.. have one dtype [dtype_match]. Returns it.
DType require_same_dtype(const InferContext& ctx, int first = 0);

/// The size that stands for two that are equal, or that a run-time check makes equal: a number before an unknown,
/// else the first; of equal ones the one with a name. A composite must ask in the order in which its expansion does,
/// so that both choose alike.
Dim one_size(const Dim& a, const Dim& b);
/// Likewise where a 1 gives way, as in broadcasting.
Dim broadcast_size(const Dim& a, const Dim& b);

/// NumPy's rule over operands first..: aligned from the last dim, equal or 1 [broadcast]. A pair of dims that only
/// the bound sizes can compare becomes a run-time check that they are equal: an unknown is never taken for a 1.
Shape broadcast_operands(const InferContext& ctx, int first = 0);
/// The same for any two shapes; `what` describes them in the error: "f32[2, 3] and f32[4]".
Shape broadcast_shapes(const InferContext& ctx, const Shape& a, const Shape& b, std::string_view what);

/// As InferContext::require_at_most, but a difference without negative terms is known to hold, since no size is
/// negative: 0 <= 2*n_seq + 1 needs no run-time check.
void require_at_most(const InferContext& ctx, const Dim& a, const Dim& b, std::string_view label,
                     std::string_view message, std::string_view hint = {});

/// Every size of an attribute's shape is zero or more [dim_negative].
void require_sizes(const InferContext& ctx, const Shape& shape);
/// The attribute `dtype` is one of the kinds [dtype_kind]. Returns it.
DType require_dtype_attr(const InferContext& ctx, unsigned kinds);

/// A list of dims, counted from the end when negative, as sorted positions [dim_range], none twice [dim_repeat].
std::vector<int> require_axes(const InferContext& ctx, const std::vector<std::int64_t>& dims, int rank);

/// The position of a dim that has passed its shape rule: -1 is the last.
inline int normalize_axis(std::int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }
/// Likewise for each of a list, sorted.
std::vector<int> normalize_axes(const std::vector<std::int64_t>& dims, int rank);

/// The shape with `dims` (sorted positions) taken away, or kept as 1.
Shape reduced_shape(const Shape& shape, const std::vector<int>& dims, bool keepdim);

/// The type rule of element-wise ops: operands of one dtype among `kinds`, broadcast; the result has the operands'
/// dtype, contiguous.
TensorType elementwise_type(const InferContext& ctx, unsigned kinds);

}  // namespace lathe::ir::rules
