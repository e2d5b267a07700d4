#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/builder.h"

/// Functions of primitive ops, with which expansions, gradient rules, passes and the DSL build graphs. Each one adds
/// to the builder of its operands, at the builder's current location. A negative `dim` counts from the end.
/// Elementwise functions use NumPy broadcasting and require equal dtypes (numbers take the tensor's dtype). Functions
/// that only wrap an op are generated from its line in ir/ops/primitives/primitives.def. For composites, see
/// functional_composites.h.
namespace lathe::ir {

/// Adds an op with these operands.
inline Value apply(const Op& op, std::initializer_list<Value> operands, Attributes attrs = {}) {
  return operands.begin()->builder().add(op, operands, std::move(attrs));
}

/// Returns a dim counted from the front. Returns one out of range unchanged, so that the op's rule rejects it.
inline std::int64_t from_front(int dim, int rank) { return dim < 0 && dim >= -rank ? dim + rank : dim; }
inline std::int64_t from_front(const Value& a, int dim) { return from_front(dim, a.rank()); }
/// Same for a list; an empty list becomes all dims. Equal ops then have equal attributes.
std::vector<std::int64_t> dims_from_front(const Value& a, std::vector<std::int64_t> dims);

// ---- sources
Value constant(GraphBuilder& b, const Number& value, DType dtype);                  ///< a scalar
Value full(GraphBuilder& b, const Shape& shape, const Number& value, DType dtype);  ///< expanded scalar
Value literal(GraphBuilder& b, const Shape& shape, NumberList values, DType dtype);
Value iota(GraphBuilder& b, const Shape& shape, int dim, DType dtype);  ///< the index along dim
Value dim_value(GraphBuilder& b, const Dim& size, DType dtype);         ///< a size as a scalar, bound or not
/// Uniform in [0, 1) by Philox 4x32-10; `state` is i64[2]: {seed, step}. `stream` distinguishes draws in a graph.
Value random_uniform(const Value& state, const Shape& shape, DType dtype, std::int64_t stream);
/// Uses a new stream, scaled to low .. high; rounding can produce high itself.
Value random_uniform(const Value& state, const Shape& shape, DType dtype, double low, double high);
Value random_normal(const Value& state, const Shape& shape, DType dtype);  ///< Box-Muller on two fresh streams

// ---- functions that only wrap an op
#define LATHE_IR_FUNCTIONS
#include "ir/ops/primitives/primitives.def"

// ---- elementwise
/// Returns a constant with the dtype of `a`.
inline Value number_like(const Value& a, const Number& value) { return constant(a.builder(), value, a.dtype()); }
inline Value add(const Value& a, const Number& b) { return add(a, number_like(a, b)); }
inline Value sub(const Value& a, const Number& b) { return sub(a, number_like(a, b)); }
inline Value sub(const Number& a, const Value& b) { return sub(number_like(b, a), b); }
inline Value mul(const Value& a, const Number& b) { return mul(a, number_like(a, b)); }
inline Value div(const Value& a, const Number& b) { return div(a, number_like(a, b)); }
inline Value div(const Number& a, const Value& b) { return div(number_like(b, a), b); }
inline Value pow(const Value& a, const Number& b) { return pow(a, number_like(a, b)); }
inline Value maximum(const Value& a, const Number& b) { return maximum(a, number_like(a, b)); }
inline Value minimum(const Value& a, const Number& b) { return minimum(a, number_like(a, b)); }
inline Value gt(const Value& a, const Value& b) { return apply(ops::lt, {b, a}); }  ///< lt with the operands swapped
inline Value ge(const Value& a, const Value& b) { return apply(ops::le, {b, a}); }
inline Value eq(const Value& a, const Number& b) { return eq(a, number_like(a, b)); }
inline Value ne(const Value& a, const Number& b) { return ne(a, number_like(a, b)); }
inline Value lt(const Value& a, const Number& b) { return lt(a, number_like(a, b)); }
inline Value le(const Value& a, const Number& b) { return le(a, number_like(a, b)); }
inline Value gt(const Value& a, const Number& b) { return gt(a, number_like(a, b)); }
inline Value ge(const Value& a, const Number& b) { return ge(a, number_like(a, b)); }
inline Value where(const Value& condition, const Value& a, const Number& b) {
  return where(condition, a, number_like(a, b));
}
inline Value where(const Value& condition, const Number& a, const Value& b) {
  return where(condition, number_like(b, a), b);
}
/// Returns `a` itself if it has the dtype already.
inline Value cast(const Value& a, DType dtype) {
  return a.dtype() == dtype ? a : apply(ops::cast, {a}, {{"dtype", dtype}});
}

// ---- views and layout
Value transpose(const Value& a, int dim0, int dim1);
Value permute(const Value& a, const std::vector<std::int64_t>& dims);
Value expand(const Value& a, const Shape& shape);  ///< dims of size 1 (or missing in front) get the shape's size
Value slice(const Value& a, int dim, const Dim& start, const Dim& stop, std::int64_t step = 1);
Value select(const Value& a, int dim, const Dim& index);             ///< slice of one, squeezed
std::vector<Value> split(const Value& a, const Dim& size, int dim);  ///< pieces of `size`; the last may be smaller
std::vector<Value> chunk(const Value& a, std::int64_t chunks, int dim);  ///< as torch.chunk, for sizes that divide
Value view(const Value& a, const Shape& shape);  ///< fails unless strides allow it [view_numel], [view_stride]
Value reshape(const Value& a, const Shape& shape);
Value flatten(const Value& a, int first, int last);  ///< reshape that merges dims first..last
Value contiguous(const Value& a);
Value unsqueeze(const Value& a, int dim);
Value squeeze(const Value& a, int dim);
/// Windows of `size` elements along dim: dim counts the windows, a new last dim their elements.
Value unfold(const Value& a, int dim, std::int64_t size, std::int64_t step = 1, std::int64_t dilation = 1);
Value flip(const Value& a, int dim);                 ///< the elements of a dim in reverse order
Value diagonal(const Value& a, int dim0, int dim1);  ///< removes both dims and appends their diagonal

// ---- reductions
/// Sums `a` to `shape`, undoing a broadcast: removes leading dims, keeps dims of size 1.
Value sum_to(const Value& a, const Shape& shape);

// ---- products
Value contract(const Value& a, const Value& b, std::string_view spec);  ///< "bik,bkj->bij"

// ---- indexing
Value gather(const Value& table, const Value& indices, int dim = 0);  ///< table[.., indices, ..]; an embedding: 0
Value scatter_add(const Value& indices, const Value& updates, const Dim& size, int dim = 0);  ///< transpose of gather
/// Replaces rows of `a` [.., n, ..] by rows [.., t, ..] at positions [t], [b, t] (by the index of dim 0), or of the
/// rows' shape. For equal positions the last row wins.
Value update_rows(const Value& a, const Value& positions, const Value& rows, int dim = 0);
/// torch.scatter: update_rows at positions of the shape of `source`.
Value scatter(const Value& a, const Value& indices, const Value& source, int dim);
Value checked_index(const Value& indices, const Dim& size);       ///< returns the indices; each must be in [0, size)
                                                                  ///< [index_range]
Value take_along(const Value& a, const Value& indices, int dim);  ///< torch.gather: equal ranks
/// Cumulative sums along dim. `exclusive` omits the element itself; `reverse` sums from the end.
Value cumsum(const Value& a, int dim, bool exclusive = false, bool reverse = false);
/// h[t] = a[t] * h[t-1] + b[t] along dim, from h = 0; in reverse, h[t] = a[t] * h[t+1] + b[t]. Equal shapes.
Value linear_recurrence(const Value& a, const Value& b, int dim, bool reverse = false);
Value argsort(const Value& a, int dim, bool descending = false);               ///< positions, i64; stable
Value top_k(const Value& a, const Dim& k, int dim = -1, bool largest = true);  ///< positions, i64, best first
/// Solves op(a) x = b for a triangular a [.., n, n] and b [.., n, k]; op(a) is a or, with `transpose`, its transpose.
Value solve_triangular(const Value& a, const Value& b, bool upper = false, bool transpose = false,
                       bool unit_diagonal = false);
/// The columns of q in the reduced QR factorization of a [.., m, n], m >= n, whose r has a diagonal of 0 or more.
Value orthonormal_basis(const Value& a);
/// Same where the bool scalar `when` is true; `otherwise`, of the type of `a`, at no cost where it is false.
Value orthonormal_basis(const Value& a, const Value& when, const Value& otherwise);
/// The eigenvectors of (a + a^T) / 2 for a [.., n, n], as columns in no order.
Value eigenvectors(const Value& a);
Value eigenvectors(const Value& a, const Value& when, const Value& otherwise);
/// x [s, k], offsets [g+1], g weights [n, k] -> [s, n]: multiplies rows offsets[i] .. offsets[i+1] by weight i
/// transposed.
Value grouped_matmul(const Value& x, const Value& offsets, std::span<const Value> weights);
/// a [s, n], b [s, k], offsets [g+1] -> [n, k]: a^T b over rows offsets[segment] .. offsets[segment+1].
Value segment_outer(const Value& a, const Value& b, const Value& offsets, std::int64_t segment);
Value concat(std::span<const Value> parts, int dim);
Value stack(std::span<const Value> parts, int dim);
Value pad(const Value& a, int dim, const Dim& low, const Dim& high);   ///< zeros before and after
Value repeat_interleave(const Value& a, std::int64_t times, int dim);  ///< expand + reshape, as needed by grouped
                                                                       ///< heads

}  // namespace lathe::ir
