#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/tensor/builder.h"

/// One function an op: what expansions, gradient rules, passes and the DSL build graphs with. Every function adds to
/// the builder of its operands, at the builder's current location. `dim` counts from the end when negative.
/// Element-wise functions broadcast by NumPy's rule and want equal dtypes (numbers take the tensor's dtype).
namespace lathe::ir {

// ---- values from nothing
Value constant(GraphBuilder& b, double value, DType dtype);                  ///< a scalar
Value full(GraphBuilder& b, const Shape& shape, double value, DType dtype);  ///< expand of a scalar
Value literal(GraphBuilder& b, const Shape& shape, std::vector<double> values, DType dtype);
Value iota(GraphBuilder& b, const Shape& shape, int dim, DType dtype);  ///< the index along dim
Value dim_value(GraphBuilder& b, const Dim& size, DType dtype);         ///< a size as a scalar, bound or not
/// Uniform in [0, 1) by Philox 4x32-10; `state` is i64[2]: {seed, step}. `stream` tells draws in a graph apart.
Value random_uniform(const Value& state, const Shape& shape, DType dtype, std::int64_t stream);
/// A fresh stream, brought into low .. high; a rounding can give high itself.
Value random_uniform(const Value& state, const Shape& shape, DType dtype, double low, double high);
Value random_normal(const Value& state, const Shape& shape, DType dtype);  ///< Box-Muller on two fresh streams

// ---- element-wise
Value add(const Value& a, const Value& b);
Value sub(const Value& a, const Value& b);
Value mul(const Value& a, const Value& b);
Value div(const Value& a, const Value& b);
Value rem(const Value& a, const Value& b);
Value minimum(const Value& a, const Value& b);
Value maximum(const Value& a, const Value& b);
Value pow(const Value& a, const Value& b);
Value add(const Value& a, double b);
Value sub(const Value& a, double b);
Value sub(double a, const Value& b);
Value mul(const Value& a, double b);
Value div(const Value& a, double b);
Value div(double a, const Value& b);
Value pow(const Value& a, double b);
Value maximum(const Value& a, double b);
Value minimum(const Value& a, double b);
Value neg(const Value& a);
Value abs(const Value& a);
Value sign(const Value& a);
Value floor(const Value& a);
Value round(const Value& a);
Value exp(const Value& a);
Value log(const Value& a);
Value sqrt(const Value& a);
Value rsqrt(const Value& a);
Value sin(const Value& a);
Value cos(const Value& a);
Value tanh(const Value& a);
Value erf(const Value& a);
Value eq(const Value& a, const Value& b);
Value ne(const Value& a, const Value& b);
Value lt(const Value& a, const Value& b);
Value le(const Value& a, const Value& b);
Value gt(const Value& a, const Value& b);  ///< lt with the operands swapped
Value ge(const Value& a, const Value& b);
Value eq(const Value& a, double b);
Value ne(const Value& a, double b);
Value lt(const Value& a, double b);
Value le(const Value& a, double b);
Value gt(const Value& a, double b);
Value ge(const Value& a, double b);
Value logical_and(const Value& a, const Value& b);
Value logical_or(const Value& a, const Value& b);
Value logical_not(const Value& a);
Value where(const Value& condition, const Value& a, const Value& b);
Value where(const Value& condition, const Value& a, double b);
Value where(const Value& condition, double a, const Value& b);
Value cast(const Value& a, DType dtype);  ///< `a` itself where it has the dtype already

// ---- views and layout
Value transpose(const Value& a, int dim0, int dim1);
Value permute(const Value& a, const std::vector<std::int64_t>& dims);
Value expand(const Value& a, const Shape& shape);  ///< dims of size 1 (or missing in front) take the shape's size
Value slice(const Value& a, int dim, const Dim& start, const Dim& stop, std::int64_t step = 1);
Value select(const Value& a, int dim, const Dim& index);             ///< slice of one, squeezed
std::vector<Value> split(const Value& a, const Dim& size, int dim);  ///< pieces of `size`; the last may be smaller
std::vector<Value> chunk(const Value& a, std::int64_t chunks, int dim);  ///< as torch.chunk, for sizes that divide
Value view(const Value& a, const Shape& shape);  ///< legal only where strides allow [view_numel], [view_stride]
Value reshape(const Value& a, const Shape& shape);
Value flatten(const Value& a, int first, int last);  ///< reshape that joins dims first..last
Value contiguous(const Value& a);
Value unsqueeze(const Value& a, int dim);
Value squeeze(const Value& a, int dim);
Value diagonal(const Value& a, int dim0, int dim1);  ///< the two dims go, their diagonal comes last

// ---- reductions; no dims: all of them
Value sum(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false);
Value max(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false);
Value min(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false);
Value mean(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false);
Value var(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false,
          std::int64_t correction = 1);
Value logsumexp(const Value& a, int dim, bool keepdim = false);
Value argmax(const Value& a, int dim);  ///< i64; the first of equals
/// Sums `a` to `shape`, undoing a broadcast: leading dims go, dims of size 1 are kept.
Value sum_to(const Value& a, const Shape& shape);

// ---- products
Value contract(const Value& a, const Value& b, std::string_view spec);  ///< "bik,bkj->bij"
Value matmul(const Value& a, const Value& b);       ///< torch.matmul: 1-D, 2-D and batched operands
Value linear(const Value& x, const Value& weight);  ///< weight [out, in]: x @ weight^T
Value linear(const Value& x, const Value& weight, const Value& bias);
Value einsum(std::string_view equation, std::span<const Value> operands);

// ---- indexing
Value gather(const Value& table, const Value& indices, int dim = 0);  ///< table[.., indices, ..]; an embedding: 0
Value scatter_add(const Value& indices, const Value& updates, const Dim& size, int dim = 0);  ///< gather transposed
/// `a` [.., n, ..] with rows [.., t, ..] at positions [t], or [b, t] by the index of dim 0; of equal ones the last.
Value update_rows(const Value& a, const Value& positions, const Value& rows, int dim = 0);
Value checked_index(const Value& indices, const Dim& size);  ///< the indices, each in [0, size), else [index_range]
Value take_along(const Value& a, const Value& indices, int dim);  ///< torch.gather: equal ranks
Value concat(std::span<const Value> parts, int dim);
Value stack(std::span<const Value> parts, int dim);
Value pad(const Value& a, int dim, const Dim& low, const Dim& high);  ///< zeros before and after
Value one_hot(const Value& indices, const Dim& classes, DType dtype);
Value repeat_interleave(const Value& a, std::int64_t times, int dim);  ///< expand + reshape, as grouped heads need it

// ---- complex
Value view_as_complex(const Value& a);  ///< f32[.., 2] -> c64[..]
Value view_as_real(const Value& a);
Value conj(const Value& a);
Value polar(const Value& radius, const Value& angle);

// ---- network composites
/// zero_masked: a row of nothing but -inf gives 0, not NaN, and has no gradient.
Value softmax(const Value& a, int dim, bool zero_masked = false);
Value log_softmax(const Value& a, int dim);
Value layer_norm(const Value& x, const Value& weight, const Value& bias, double eps = 1e-5);  ///< over the last dim
Value rms_norm(const Value& x, double eps = 1e-5);
Value rms_norm(const Value& x, const Value& weight, double eps = 1e-5);
Value relu(const Value& a);
Value gelu(const Value& a, bool tanh_approximation = false);
Value silu(const Value& a);
Value sigmoid(const Value& a);
Value softplus(const Value& a);
Value square(const Value& a);
Value reciprocal(const Value& a);
Value clamp(const Value& a, double low, double high);
Value masked_fill(const Value& a, const Value& mask, double value);
Value tril(const Value& a, std::int64_t diagonal = 0);
Value triu(const Value& a, std::int64_t diagonal = 0);
Value stop_gradient(const Value& a);
/// Mean over the targets that differ from `ignore_index` of -log softmax(logits)[target]; with label smoothing as
/// torch.nn.functional.cross_entropy. logits [.., classes], targets i64 [..].
Value cross_entropy(const Value& logits, const Value& targets, std::optional<std::int64_t> ignore_index = {},
                    double label_smoothing = 0);
Value dropout(const Value& a, const Value& random_state, double p);
/// softmax(q k^T * scale [+ mask, or where a bool mask is false: -inf]) v; q [.., q, d], k [.., k, d], v [.., k, e].
/// zero_masked: a query that sees no key gives 0, not NaN, and has no gradient.
Value attention(const Value& q, const Value& k, const Value& v, std::optional<Value> mask, double scale, bool causal,
                bool zero_masked = false);
/// Rotary embedding in the half-split layout: x * cos + rotate_half(x) * sin (Su et al. 2021, eq. 34).
Value rope(const Value& x, const Value& cos, const Value& sin);

}  // namespace lathe::ir
