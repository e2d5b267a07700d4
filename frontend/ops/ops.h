#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/ops/plain_ops.h"
#include "frontend/tensor.h"

/// DSL ops that are more than a direct call of one op; the others are in frontend/ops/plain_ops.h. Shapes are in
/// brackets; all rules are in docs/ops.md.
namespace lathe {

// ---- element-wise, any float shape
Tensor maximum(const Tensor& a, const Number& b, Where at = Where::current());
Tensor minimum(const Tensor& a, const Number& b, Where at = Where::current());
Tensor pow(const Tensor& a, const Number& b, Where at = Where::current());
Tensor where(const Tensor& condition, const Tensor& a, const Number& b, Where at = Where::current());
Tensor where(const Tensor& condition, const Number& a, const Tensor& b, Where at = Where::current());

// ---- matmuls
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where at = Where::current());
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Where at = Where::current());

/// Multiplies segments of rows: x [s, k], offsets i64 [g+1], g weights [n, k] -> [s, n]. Rows offsets[i] ..
/// offsets[i+1]-1 are multiplied by weight i, as in linear; rows outside of all segments yield zeros.
Tensor grouped_matmul(const Tensor& x, const Tensor& offsets, const std::vector<Tensor>& weights,
                      Where at = Where::current());

// ---- indexing and concatenation
/// table [.., n, ..], indices [i..] -> [.., i.., ..]: the dims of the indices replace `dim`.
Tensor gather(const Tensor& table, const Tensor& indices, DimIndex dim = 0, Where at = Where::current());
/// ids [..], table [n, d] -> [.., d].
Tensor embedding(const Tensor& ids, const Tensor& table, Where at = Where::current());
/// The same, but rows of `padding_idx` get no gradient, as in PyTorch.
Tensor embedding(const Tensor& ids, const Tensor& table, std::int64_t padding_idx, Where at = Where::current());
/// The transpose of gather: adds updates [.., i.., ..] to zeros [.., size, ..] at the indices [i..]. Updates of equal
/// indices are summed in a fixed order. `size` at `dim` replaces the dims of the indices.
Tensor scatter_add(const Tensor& indices, const Tensor& updates, const Dim& size, DimIndex dim = 0,
                   Where at = Where::current());
/// Returns `a` [.., n, ..] with its rows at `positions` replaced by rows [.., t, ..]; of equal positions the last one
/// wins. Positions are [t], shared by all; [b, t], one list per index of dim 0; or of the shape of rows, see scatter.
/// If a state is updated with the result and not read otherwise, only the rows are written, in place.
Tensor update_rows(const Tensor& a, const Tensor& positions, const Tensor& rows, DimIndex dim = 0,
                   Where at = Where::current());
/// torch.scatter: `a` with source[.., t, ..] at position indices[.., t, ..] along dim. Indices have the shape of the
/// source, which is that of `a` except for dim. Of equal indices the last one wins, and only it has a gradient.
Tensor scatter(const Tensor& a, const Tensor& indices, const Tensor& source, DimIndex dim,
               Where at = Where::current());
/// torch.gather: the element at each index along dim; indices have the rank of `a`.
Tensor take_along(const Tensor& a, const Tensor& indices, DimIndex dim, Where at = Where::current());

struct UnfoldOptions {
  std::int64_t size;          ///< of a window
  std::int64_t step = 1;      ///< distance between windows
  std::int64_t dilation = 1;  ///< distance between the elements of a window
};
/// Windows along dim, without a copy: [.., n, ..] -> [.., (n - dilation (size - 1) - 1) / step + 1, .., size]. Their
/// elements are the last dim. [unfold_size] [unfold_step]
Tensor unfold(const Tensor& a, DimIndex dim, const UnfoldOptions& windows, Where at = Where::current());
// ---- triangular matrices; cholesky is in plain_ops.h
struct TriangularOptions {
  bool upper = false;          ///< a is upper triangular; its lower triangle is not read
  bool transpose = false;      ///< solves with the transpose of a
  bool unit_diagonal = false;  ///< takes the diagonal of a as ones and does not read it
};
/// The x [.., n, k] with a x = b, or a^T x = b, for a triangular a [.., n, n] and b [.., n, k], f32 or f64. A zero on
/// the diagonal gives infinities or NaN.
Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options = {},
                        Where at = Where::current());

// ---- along a dim
struct CumsumOptions {
  bool exclusive = false;  ///< excludes the element itself
  bool reverse = false;    ///< sums from each element to the end
};
/// Cumulative sum along dim. bf16 and f16 are summed in f32.
Tensor cumsum(const Tensor& a, DimIndex dim, const CumsumOptions& options = {}, Where at = Where::current());
struct RecurrenceOptions {
  bool reverse = false;  ///< starts at the end: h[t] = a[t] * h[t+1] + b[t]
  Tensor initial = {};   ///< the state before the first step, with the shape of b without dim; empty: 0
};
/// h[t] = a[t] * h[t-1] + b[t] along dim, such as a gated or diagonal state-space layer; returns all h, in the shape
/// of b. `a` broadcasts to `b`. The state is computed in f64. [recurrence_shape]
Tensor linear_recurrence(const Tensor& a, const Tensor& b, DimIndex dim, const RecurrenceOptions& options = {},
                         Where at = Where::current());
/// Sorted elements and their original indices, as i64.
struct Ranked {
  Tensor values, indices;
};
/// Stable sort. NaN is larger than every number, as in PyTorch.
Ranked sort(const Tensor& a, DimIndex dim = -1, Flag descending = false, Where at = Where::current());
Tensor argsort(const Tensor& a, DimIndex dim = -1, Flag descending = false, Where at = Where::current());
/// Returns the first k elements of the descending order, or of the ascending one if not `largest`. Ties keep their
/// order.
Ranked top_k(const Tensor& a, const Dim& k, DimIndex dim = -1, Flag largest = true, Where at = Where::current());
Tensor concat(std::initializer_list<Tensor> parts, DimIndex dim, Where at = Where::current());
Tensor concat(const std::vector<Tensor>& parts, DimIndex dim, Where at = Where::current());
/// Joins tensors of one shape along a new dim: n times [a, b] -> [n, a, b] for dim 0.
Tensor stack(std::initializer_list<Tensor> parts, DimIndex dim, Where at = Where::current());
Tensor stack(const std::vector<Tensor>& parts, DimIndex dim, Where at = Where::current());
/// Adds `low` zeros before and `high` zeros after the elements of a dim.
Tensor pad(const Tensor& a, DimIndex dim, const Dim& low, const Dim& high, Where at = Where::current());

// ---- networks
/// Zeroes each element with probability p and scales the others by 1 / (1 - p); `random_state` is
/// Graph::random_state().
Tensor dropout(const Tensor& a, const Tensor& random_state, double p, Where at = Where::current());
/// The causal mask of an attention. false: a query sees all keys. true: query i sees keys 0 .. i, aligned top left if
/// there are more keys than queries, as PyTorch's is_causal. From an offset: query i sees keys 0 .. offset + i, such
/// as with a cache of previous keys.
class Causal {
 public:
  Causal(std::same_as<bool> auto is_causal) : is_causal_(is_causal) {}  // NOLINT(google-explicit-constructor)
  /// offset i64[], or i64[B] for scores [B, .., n, m]: one per index of their dim 0.
  static Causal from(const Tensor& offset);
  /// One offset for all: a number, or a size such as length - T, which must be at least 0.
  static Causal from(const Dim& offset);

  bool is_causal() const { return is_causal_; }
  /// Returns the offset as a tensor of this graph; none without an offset.
  std::optional<Tensor> offset(ir::GraphBuilder& graph) const;

 private:
  bool is_causal_;
  std::optional<Tensor> tensor_ = {};
  std::optional<Dim> size_ = {};
};

/// Returns softmax(q k^T * scale, masked) v as one op: q [.., n, d], k [.., m, d], v [.., m, e] -> [.., n, e]. A bool
/// mask is true where a query sees a key; a float mask is added to the scores. A query that sees no key yields NaN.
/// With `zero_masked` it yields 0 without a gradient, as in PyTorch's scaled_dot_product_attention. For n new queries
/// whose keys are the last ones of a cache of `length` keys, use Causal::from(length - n).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double scale,
                 const Causal& causal, Flag zero_masked = false, Where at = Where::current());

}  // namespace lathe
