#pragma once

#include "ir/ops/composites.h"
#include "ir/ops/functional/functional.h"

/// One function a composite op, as functional.h has them of primitives.
namespace lathe::ir {

// ---- reductions; no dims: all of them
Value mean(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false);
Value var(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false,
          std::int64_t correction = 1);
Value logsumexp(const Value& a, int dim, bool keepdim = false);
Value argmax(const Value& a, int dim);  ///< i64; the first of equals

// ---- products
/// torch.matmul: 1-D, 2-D and batched operands
inline Value matmul(const Value& a, const Value& b) { return apply(ops::matmul, {a, b}); }
/// weight [out, in]: x @ weight^T
inline Value linear(const Value& x, const Value& weight) { return apply(ops::linear, {x, weight}); }
inline Value linear(const Value& x, const Value& weight, const Value& bias) {
  return apply(ops::linear, {x, weight, bias});
}
Value einsum(std::string_view equation, std::span<const Value> operands);

// ---- indexing
Value one_hot(const Value& indices, const Dim& classes, DType dtype);

// ---- networks
/// zero_masked: a row of nothing but -inf gives 0, not NaN, and has no gradient.
Value softmax(const Value& a, int dim, bool zero_masked = false);
Value log_softmax(const Value& a, int dim);
Value layer_norm(const Value& x, const Value& weight, const Value& bias, double eps = 1e-5);  ///< over the last dim
Value rms_norm(const Value& x, double eps = 1e-5);
Value rms_norm(const Value& x, const Value& weight, double eps = 1e-5);
inline Value relu(const Value& a) { return apply(ops::relu, {a}); }
Value gelu(const Value& a, bool tanh_approximation = false);
inline Value silu(const Value& a) { return apply(ops::silu, {a}); }
inline Value sigmoid(const Value& a) { return apply(ops::sigmoid, {a}); }
inline Value softplus(const Value& a) { return apply(ops::softplus, {a}); }
inline Value square(const Value& a) { return apply(ops::square, {a}); }
inline Value reciprocal(const Value& a) { return apply(ops::reciprocal, {a}); }
Value clamp(const Value& a, double low, double high);
Value masked_fill(const Value& a, const Value& mask, double value);
Value tril(const Value& a, std::int64_t diagonal = 0);
Value triu(const Value& a, std::int64_t diagonal = 0);
inline Value stop_gradient(const Value& a) { return apply(ops::stop_gradient, {a}); }
/// Mean over the targets that differ from `ignore_index` of -log softmax(logits)[target]; with label smoothing as
/// torch.nn.functional.cross_entropy. logits [.., classes], targets i64 [..].
Value cross_entropy(const Value& logits, const Value& targets, std::optional<std::int64_t> ignore_index = {},
                    double label_smoothing = 0);
Value dropout(const Value& a, const Value& random_state, double p);
/// softmax(q k^T * scale [+ mask, or where a bool mask is false: -inf]) v; q [.., q, d], k [.., k, d], v [.., k, e].
/// zero_masked: a query that sees no key gives 0, not NaN, and has no gradient.
Value attention(const Value& q, const Value& k, const Value& v, std::optional<Value> mask, double scale, bool causal,
                bool zero_masked = false);
/// u8 or i8 values by blockwise scales.
inline Value dequantize(const Value& q, const Value& scales) { return apply(ops::dequantize, {q, scales}); }
/// Rotary embedding in the half-split layout: x * cos + rotate_half(x) * sin (Su et al. 2021, eq. 34).
inline Value rope(const Value& x, const Value& cos, const Value& sin) { return apply(ops::rope, {x, cos, sin}); }

}  // namespace lathe::ir
