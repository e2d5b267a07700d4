#pragma once

#include "ir/ops/composites/composites.h"
#include "ir/ops/functional/functional.h"

/// Functions of composite ops, as functional.h has them of primitives.
namespace lathe::ir {

#define LATHE_IR_FUNCTIONS
#include "ir/ops/composites/composites.def"

// ---- reductions; no dims: all of them
Value mean(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false);
Value var(const Value& a, const std::vector<std::int64_t>& dims = {}, bool keepdim = false,
          std::int64_t correction = 1);
Value logsumexp(const Value& a, int dim, bool keepdim = false);
Value argmax(const Value& a, int dim);  ///< i64; the first of equals

// ---- products
/// weight [out, in]: x @ weight^T
inline Value linear(const Value& x, const Value& weight) { return apply(ops::linear, {x, weight}); }
inline Value linear(const Value& x, const Value& weight, const Value& bias) {
  return apply(ops::linear, {x, weight, bias});
}
Value einsum(std::string_view equation, std::span<const Value> operands);

// ---- networks
/// zero_masked: a row of nothing but -inf gives 0, not NaN, and has no gradient.
Value softmax(const Value& a, int dim, bool zero_masked = false);
Value log_softmax(const Value& a, int dim);
Value rms_norm(const Value& x, double eps = 1e-5);
Value rms_norm(const Value& x, const Value& weight, double eps = 1e-5);
Value gelu(const Value& a, bool tanh_approximation = false);
/// Mean over the targets that differ from `ignore_index` of -log softmax(logits)[target]; with label smoothing as
/// torch.nn.functional.cross_entropy. logits [.., classes], targets i64 [..].
Value cross_entropy(const Value& logits, const Value& targets, std::optional<std::int64_t> ignore_index = {},
                    double label_smoothing = 0);
Value dropout(const Value& a, const Value& random_state, double p);
/// softmax(q k^T * scale [+ mask, or where a bool mask is false: -inf]) v; q [.., q, d], k [.., k, d], v [.., k, e].
/// zero_masked: a query that sees no key gives 0, not NaN, and has no gradient. Causal: query i sees keys 0 .. i,
/// with an offset, i64[] or i64[B] for dim 0 of the scores, keys 0 .. offset + i.
Value attention(const Value& q, const Value& k, const Value& v, std::optional<Value> mask, double scale, bool causal,
                bool zero_masked = false, std::optional<Value> offset = {});

}  // namespace lathe::ir
