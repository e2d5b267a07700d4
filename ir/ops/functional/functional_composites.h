#pragma once

#include "ir/ops/composites/composites.h"
#include "ir/ops/functional/functional.h"

/// Functions of composite ops; see functional.h for primitives. With zero_masked, a row of only -inf gives 0, not
/// NaN, and has no gradient.
namespace lathe::ir {

#define LATHE_IR_FUNCTIONS
#include "ir/ops/composites/composites.def"

Value einsum(std::string_view equation, std::span<const Value> operands);
/// Returns the mean of -log softmax(logits)[target] over the targets that differ from `ignore_index`, with label
/// smoothing as in torch.nn.functional.cross_entropy. logits [.., classes], targets i64 [..].
Value cross_entropy(const Value& logits, const Value& targets, std::optional<std::int64_t> ignore_index = {},
                    double label_smoothing = 0);
Value dropout(const Value& a, const Value& random_state, double p);
/// softmax(q k^T * scale [+ mask, or -inf where a bool mask is false]) v; q [.., q, d], k [.., k, d], v [.., k, e].
/// With `causal`, query i attends to keys 0 .. i. With an offset, i64[] or i64[B] for dim 0 of the scores, it attends
/// to keys 0 .. offset + i.
Value attention(const Value& q, const Value& k, const Value& v, std::optional<Value> mask, double scale, bool causal,
                bool zero_masked = false, std::optional<Value> offset = {});

}  // namespace lathe::ir
