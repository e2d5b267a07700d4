#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/op.h"

/// Helpers shared by shape rules: each checks one labelled constraint and reports errors for the calling op. Labels
/// used here: dtype_kind, dtype_match, broadcast, dim_range, dim_repeat, dim_negative. An op lists those that it can
/// raise.
namespace lathe::ir::rules {

/// The dtype kinds that an op accepts; combine with |.
enum Kinds : unsigned { floats = 1, integers = 2, booleans = 4, complexes = 8, bytes = 16 };
inline constexpr unsigned reals = floats | integers;
inline constexpr unsigned numbers = reals | complexes;
inline constexpr unsigned anything = numbers | booleans | bytes;
bool is_kind(DType dtype, unsigned kinds);

/// Returns "q: f32[B, n=3]" for a named operand, otherwise "f32[B, n=3]".
std::string describe(const InferContext& ctx, int operand);
/// Returns the text for an operand in a sentence: its name, or "the operand" / "operand 1".
std::string operand_name(const InferContext& ctx, int operand);

/// Requires operand `operand` to have one of the dtype kinds [dtype_kind].
void require_kind(const InferContext& ctx, int operand, unsigned kinds);
/// Requires operands first.. to have one dtype [dtype_match]. Returns it.
DType require_same_dtype(const InferContext& ctx, int first = 0);

/// Returns the representative of two sizes that are equal, or that a run-time check requires to be equal. Prefers a
/// number to an unknown, then the first; of equal ones, the named one. A composite must call this in the same order
/// as its expansion, so that both choose the same.
Dim one_size(const Dim& a, const Dim& b);
/// Same, but a 1 yields, as in broadcasting.
Dim broadcast_size(const Dim& a, const Dim& b);

/// Broadcasts operands first.. by NumPy's rule: dims are aligned from the last and are equal or 1 [broadcast]. If
/// only bound sizes can decide, records a run-time check that the dims are equal: an unknown is never treated as 1.
Shape broadcast_operands(const InferContext& ctx, int first = 0);
/// Same for any two shapes; `what` describes them in errors: "f32[2, 3] and f32[4]".
Shape broadcast_shapes(const InferContext& ctx, const Shape& a, const Shape& b, std::string_view what);

/// Same as InferContext::require_at_most, but a difference without negative terms is known to hold, because sizes are
/// not negative: 0 <= 2*n_seq + 1 needs no run-time check.
void require_at_most(const InferContext& ctx, const Dim& a, const Dim& b, std::string_view label,
                     std::string_view message, std::string_view hint = {});

/// Requires every size of an attribute's shape to be at least zero [dim_negative].
void require_sizes(const InferContext& ctx, const Shape& shape);
/// Requires the attribute `dtype` to be one of the kinds [dtype_kind]. Returns it.
DType require_dtype_attr(const InferContext& ctx, unsigned kinds);

/// Returns dims as sorted positions [dim_range], without duplicates [dim_repeat]; negative ones count from the end.
std::vector<int> require_axes(const InferContext& ctx, const std::vector<std::int64_t>& dims, int rank);

/// Returns the position of a dim that has passed its shape rule: -1 is the last.
inline int normalize_axis(std::int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }
/// Same for a list, sorted.
std::vector<int> normalize_axes(const std::vector<std::int64_t>& dims, int rank);

/// Returns the shape with `dims` (sorted positions) removed, or kept as 1.
Shape reduced_shape(const Shape& shape, const std::vector<int>& dims, bool keepdim);

/// Type rule of elementwise ops: operands of one dtype among `kinds`, broadcast. The result is contiguous and has the
/// operands' dtype.
TensorType elementwise_type(const InferContext& ctx, unsigned kinds);

}  // namespace lathe::ir::rules
