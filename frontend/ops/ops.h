#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/ops/plain_ops.h"
#include "frontend/tensor.h"

/// The ops of the DSL that read best as functions; those that are no more than their op are in
/// frontend/ops/plain_ops.h. Shapes stand in brackets; every rule is that of docs/ops.md.
namespace lathe {

// ---- element-wise, any float shape
Tensor maximum(const Tensor& a, const Number& b, Where at = Where::current());
Tensor minimum(const Tensor& a, const Number& b, Where at = Where::current());
Tensor pow(const Tensor& a, const Number& b, Where at = Where::current());
Tensor where(const Tensor& condition, const Tensor& a, const Number& b, Where at = Where::current());
Tensor where(const Tensor& condition, const Number& a, const Tensor& b, Where at = Where::current());

// ---- products
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where at = Where::current());
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Where at = Where::current());

/// Products of segments of rows: x [s, k], offsets i64 [g+1], g weights [n, k] -> [s, n]. Rows offsets[i] up to
/// offsets[i+1] are multiplied by weight i, as linear does; rows of no segment give zeros.
Tensor grouped_matmul(const Tensor& x, const Tensor& offsets, const std::vector<Tensor>& weights,
                      Where at = Where::current());

// ---- indexing and joining
/// table [.., n, ..], indices [i..] -> [.., i.., ..]: the indices' dims stand where `dim` stood.
Tensor gather(const Tensor& table, const Tensor& indices, DimIndex dim = 0, Where at = Where::current());
/// ids [..], table [n, d] -> [.., d].
Tensor embedding(const Tensor& ids, const Tensor& table, Where at = Where::current());
/// The same; ids of `padding_idx` give its row too, which they leave without a gradient, as PyTorch.
Tensor embedding(const Tensor& ids, const Tensor& table, std::int64_t padding_idx, Where at = Where::current());
/// gather transposed: zeros [.., size, ..] with updates [.., i.., ..] added where indices [i..] say; indices that
/// occur several times add up, in a fixed order. `size` stands where the indices' dims stood, at `dim`.
Tensor scatter_add(const Tensor& indices, const Tensor& updates, const Dim& size, DimIndex dim = 0,
                   Where at = Where::current());
/// `a` [.., n, ..] with its rows at `positions` replaced by rows [.., t, ..]; of equal positions the last counts. One
/// list of positions [t] for all, or [b, t]: one for each index of dim 0, or positions of the shape of rows: see
/// scatter. A state that is updated with the result, and not read otherwise, is written in place: only the rows are
/// touched.
Tensor update_rows(const Tensor& a, const Tensor& positions, const Tensor& rows, DimIndex dim = 0,
                   Where at = Where::current());
/// torch.scatter: `a` with source[.., t, ..] at position indices[.., t, ..] along dim; indices have the shape of the
/// source, which is that of `a` but for dim. Of equal indices the last counts, and it alone has a gradient.
Tensor scatter(const Tensor& a, const Tensor& indices, const Tensor& source, DimIndex dim,
               Where at = Where::current());
/// torch.gather: the element of each index along dim; indices have a dim for each of `a`.
Tensor take_along(const Tensor& a, const Tensor& indices, DimIndex dim, Where at = Where::current());

// ---- along a dim
/// Sums along dim of all elements up to each. bf16 and f16 are summed in f32.
struct CumsumOptions {
  bool exclusive = false;  ///< without the element itself
  bool reverse = false;    ///< of the elements from it on
};
Tensor cumsum(const Tensor& a, DimIndex dim, const CumsumOptions& options = {}, Where at = Where::current());
/// Elements in order and where they stood, as i64.
struct Ranked {
  Tensor values, indices;
};
/// Stable: equal elements keep their order. A NaN counts as larger than every number, as in PyTorch.
Ranked sort(const Tensor& a, DimIndex dim = -1, Flag descending = false, Where at = Where::current());
Tensor argsort(const Tensor& a, DimIndex dim = -1, Flag descending = false, Where at = Where::current());
/// The first k of that order, descending or, for the smallest, ascending: of equal elements the first ones.
Ranked top_k(const Tensor& a, const Dim& k, DimIndex dim = -1, Flag largest = true, Where at = Where::current());
Tensor concat(std::initializer_list<Tensor> parts, DimIndex dim, Where at = Where::current());
Tensor concat(const std::vector<Tensor>& parts, DimIndex dim, Where at = Where::current());
Tensor stack(std::initializer_list<Tensor> parts, DimIndex dim, Where at = Where::current());
Tensor stack(const std::vector<Tensor>& parts, DimIndex dim, Where at = Where::current());
Tensor pad(const Tensor& a, DimIndex dim, const Dim& low, const Dim& high, Where at = Where::current());

// ---- networks
/// Zeros each element with probability p and scales the rest by 1 / (1 - p); `random_state` is Graph::random_state().
Tensor dropout(const Tensor& a, const Tensor& random_state, double p, Where at = Where::current());
/// Which keys a query of an attention sees by their order: all (false); query i keys 0 .. i (true), which is aligned
/// top left where there are more keys than queries, as PyTorch's is_causal; or, from an offset, keys 0 .. offset + i,
/// as where a cache holds the keys before those of the queries.
class Causal {
 public:
  Causal(std::same_as<bool> auto is_causal) : is_causal_(is_causal) {}  // NOLINT(google-explicit-constructor)
  /// offset i64[], or i64[B] for scores [B, .., n, m]: one for each index of their dim 0.
  static Causal from(const Tensor& offset);
  /// The same for all: a number, or a size such as length - T, which is 0 or more.
  static Causal from(const Dim& offset);

  bool is_causal() const { return is_causal_; }
  /// As a tensor of this graph; none without an offset.
  std::optional<Tensor> offset(ir::GraphBuilder& graph) const;

 private:
  bool is_causal_;
  std::optional<Tensor> tensor_ = {};
  std::optional<Dim> size_ = {};
};

/// softmax(q k^T * scale, masked) v as one op: q [.., n, d], k [.., m, d], v [.., m, e] -> [.., n, e]. A bool mask is
/// true where a query sees a key, any other is added to the scores. A query that sees no key gives NaN; with
/// `zero_masked` 0, and no gradient, as PyTorch's scaled_dot_product_attention does. New queries over the keys of a
/// cache, theirs the last of `length`, are Causal::from(length - n).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double scale,
                 const Causal& causal, Flag zero_masked = false, Where at = Where::current());

}  // namespace lathe
