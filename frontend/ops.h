#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/tensor.h"

/// The ops of the DSL that read best as functions. Shapes stand in brackets; every rule is that of docs/ops.md.
namespace lathe {

namespace detail {
/// The op of this name, which has no attributes, over the operands at the user's line.
Tensor op(std::string_view name, const Where& at, std::initializer_list<const Tensor*> operands);
}  // namespace detail

// ---- element-wise, any float shape
inline Tensor exp(const Tensor& a, Where at = Where::current()) { return detail::op("exp", at, {&a}); }
inline Tensor log(const Tensor& a, Where at = Where::current()) { return detail::op("log", at, {&a}); }
inline Tensor sqrt(const Tensor& a, Where at = Where::current()) { return detail::op("sqrt", at, {&a}); }
inline Tensor rsqrt(const Tensor& a, Where at = Where::current()) { return detail::op("rsqrt", at, {&a}); }
inline Tensor sin(const Tensor& a, Where at = Where::current()) { return detail::op("sin", at, {&a}); }
inline Tensor cos(const Tensor& a, Where at = Where::current()) { return detail::op("cos", at, {&a}); }
inline Tensor tanh(const Tensor& a, Where at = Where::current()) { return detail::op("tanh", at, {&a}); }
inline Tensor erf(const Tensor& a, Where at = Where::current()) { return detail::op("erf", at, {&a}); }
inline Tensor abs(const Tensor& a, Where at = Where::current()) { return detail::op("abs", at, {&a}); }
inline Tensor sign(const Tensor& a, Where at = Where::current()) { return detail::op("sign", at, {&a}); }
inline Tensor floor(const Tensor& a, Where at = Where::current()) { return detail::op("floor", at, {&a}); }
inline Tensor round(const Tensor& a, Where at = Where::current()) { return detail::op("round", at, {&a}); }
inline Tensor relu(const Tensor& a, Where at = Where::current()) { return detail::op("relu", at, {&a}); }
inline Tensor silu(const Tensor& a, Where at = Where::current()) { return detail::op("silu", at, {&a}); }
inline Tensor sigmoid(const Tensor& a, Where at = Where::current()) { return detail::op("sigmoid", at, {&a}); }
/// log(1 + e^a)
inline Tensor softplus(const Tensor& a, Where at = Where::current()) { return detail::op("softplus", at, {&a}); }
inline Tensor square(const Tensor& a, Where at = Where::current()) { return detail::op("square", at, {&a}); }
inline Tensor reciprocal(const Tensor& a, Where at = Where::current()) { return detail::op("reciprocal", at, {&a}); }
Tensor gelu(const Tensor& a, bool tanh_approximation = false, Where at = Where::current());
Tensor clamp(const Tensor& a, double low, double high, Where at = Where::current());
inline Tensor maximum(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("maximum", at, {&a, &b});
}
Tensor maximum(const Tensor& a, double b, Where at = Where::current());
inline Tensor minimum(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("minimum", at, {&a, &b});
}
Tensor minimum(const Tensor& a, double b, Where at = Where::current());
inline Tensor pow(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("pow", at, {&a, &b});
}
Tensor pow(const Tensor& a, double b, Where at = Where::current());
inline Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("where", at, {&condition, &a, &b});
}
Tensor where(const Tensor& condition, const Tensor& a, double b, Where at = Where::current());
Tensor where(const Tensor& condition, double a, const Tensor& b, Where at = Where::current());
Tensor masked_fill(const Tensor& a, const Tensor& mask, double value, Where at = Where::current());
Tensor tril(const Tensor& a, std::int64_t diagonal = 0, Where at = Where::current());
Tensor triu(const Tensor& a, std::int64_t diagonal = 0, Where at = Where::current());

// ---- products
/// [.., m, k] x [.., k, n] -> [.., m, n]
inline Tensor matmul(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("matmul", at, {&a, &b});
}
/// x [.., in], weight [out, in], bias [out] -> [.., out]
inline Tensor linear(const Tensor& x, const Tensor& weight, Where at = Where::current()) {
  return detail::op("linear", at, {&x, &weight});
}
inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where at = Where::current()) {
  return detail::op("linear", at, {&x, &weight, &bias});
}
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where at = Where::current());
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Where at = Where::current());

/// Products of segments of rows: x [s, k], offsets i64 [g+1], g weights [n, k] -> [s, n]. Rows offsets[i] up to
/// offsets[i+1] are multiplied by weight i, as linear does; rows of no segment give zeros.
Tensor grouped_matmul(const Tensor& x, const Tensor& offsets, const std::vector<Tensor>& weights,
                      Where at = Where::current());

// ---- indexing and joining
/// table [.., n, ..], indices [i..] -> [.., i.., ..]: the indices' dims stand where `dim` stood.
Tensor gather(const Tensor& table, const Tensor& indices, int dim = 0, Where at = Where::current());
/// ids [..], table [n, d] -> [.., d].
Tensor embedding(const Tensor& ids, const Tensor& table, Where at = Where::current());
/// The same; ids of `padding_idx` give its row too, which they leave without a gradient, as PyTorch.
Tensor embedding(const Tensor& ids, const Tensor& table, std::int64_t padding_idx, Where at = Where::current());
/// gather transposed: zeros [.., size, ..] with updates [.., i.., ..] added where indices [i..] say; indices that
/// occur several times add up, in a fixed order. `size` stands where the indices' dims stood, at `dim`.
Tensor scatter_add(const Tensor& indices, const Tensor& updates, const Dim& size, int dim = 0,
                   Where at = Where::current());
/// `a` [.., n, ..] with its rows at `positions` replaced by rows [.., t, ..]; of equal positions the last counts. One
/// list of positions [t] for all, or [b, t]: one for each index of dim 0, or positions of the shape of rows: see
/// scatter. A state that is updated with the result, and not read otherwise, is written in place: only the rows are
/// touched.
Tensor update_rows(const Tensor& a, const Tensor& positions, const Tensor& rows, int dim = 0,
                   Where at = Where::current());
/// torch.scatter: `a` with source[.., t, ..] at place indices[.., t, ..] along dim; indices have the shape of the
/// source, which is that of `a` but for dim. Of equal indices the last counts, and it alone has a gradient.
Tensor scatter(const Tensor& a, const Tensor& indices, const Tensor& source, int dim, Where at = Where::current());
/// torch.gather: the element of each place along dim; indices have a dim for each of `a`.
Tensor take_along(const Tensor& a, const Tensor& indices, int dim, Where at = Where::current());

// ---- along a dim
/// Sums along dim of all elements up to each. bf16 and f16 are summed in f32.
struct CumsumOptions {
  bool exclusive = false;  ///< without the element itself
  bool reverse = false;    ///< of the elements from it on
};
Tensor cumsum(const Tensor& a, int dim, const CumsumOptions& options = {}, Where at = Where::current());
/// Elements in order and where they stood, as i64.
struct Ranked {
  Tensor values, indices;
};
/// Stable: equal elements keep their order. A NaN counts as larger than every number, as in PyTorch.
Ranked sort(const Tensor& a, int dim = -1, bool descending = false, Where at = Where::current());
Tensor argsort(const Tensor& a, int dim = -1, bool descending = false, Where at = Where::current());
/// The first k of that order, descending or, for the smallest, ascending: of equal elements the first ones.
Ranked top_k(const Tensor& a, const Dim& k, int dim = -1, bool largest = true, Where at = Where::current());
Tensor concat(std::initializer_list<Tensor> parts, int dim, Where at = Where::current());
Tensor concat(const std::vector<Tensor>& parts, int dim, Where at = Where::current());
Tensor stack(std::initializer_list<Tensor> parts, int dim, Where at = Where::current());
Tensor stack(const std::vector<Tensor>& parts, int dim, Where at = Where::current());
Tensor pad(const Tensor& a, int dim, const Dim& low, const Dim& high, Where at = Where::current());
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype, Where at = Where::current());

// ---- complex
/// [.., 2] -> complex [..]
inline Tensor view_as_complex(const Tensor& a, Where at = Where::current()) {
  return detail::op("view_as_complex", at, {&a});
}
/// complex [..] -> [.., 2]
inline Tensor view_as_real(const Tensor& a, Where at = Where::current()) {
  return detail::op("view_as_real", at, {&a});
}
inline Tensor conj(const Tensor& a, Where at = Where::current()) { return detail::op("conj", at, {&a}); }
/// radius * e^(i angle)
inline Tensor polar(const Tensor& radius, const Tensor& angle, Where at = Where::current()) {
  return detail::op("polar", at, {&radius, &angle});
}

// ---- networks
Tensor softmax(const Tensor& a, int dim, Where at = Where::current());
Tensor log_softmax(const Tensor& a, int dim, Where at = Where::current());
/// Over the last dim: x [.., d], weight and bias [d].
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5,
                  Where at = Where::current());
Tensor rms_norm(const Tensor& x, double eps = 1e-5, Where at = Where::current());
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-5, Where at = Where::current());
/// Zeros each element with probability p and scales the rest by 1 / (1 - p); `random_state` is Graph::random_state().
Tensor dropout(const Tensor& a, const Tensor& random_state, double p, Where at = Where::current());
/// softmax(q k^T * scale, masked) v as one op: q [.., n, d], k [.., m, d], v [.., m, e] -> [.., n, e]. A bool mask is
/// true where a query sees a key, any other is added to the scores. A query that sees no key gives NaN; with
/// `zero_masked` 0, and no gradient, as PyTorch's scaled_dot_product_attention does.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double scale,
                 bool causal, bool zero_masked = false, Where at = Where::current());
/// q * scale, of quantized numbers q [.., n], i8 or u8, and float scales [.., n / block], one for each block of
/// neighbours: [.., n] in the dtype of the scales. The products of a linear layer read q and the scales where they
/// lie. UserErrors [dtype_kind], [dequantize_scales].
inline Tensor dequantize(const Tensor& q, const Tensor& scales, Where at = Where::current()) {
  return detail::op("dequantize", at, {&q, &scales});
}
/// x * cos + rotate_half(x) * sin: x [.., n, d], cos and sin [n, d].
inline Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Where at = Where::current()) {
  return detail::op("rope", at, {&x, &cos, &sin});
}

}  // namespace lathe
