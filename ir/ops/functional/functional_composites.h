#pragma once

#include "ir/ops/composites/composites.h"
#include "ir/ops/functional/functional.h"

/// Functions of composite ops, as functional.h has them of primitives. Where zero_masked is set, a row of nothing but
/// -inf gives 0, not NaN, and has no gradient.
namespace lathe::ir {

#define LATHE_IR_FUNCTIONS
#include "ir/ops/composites/composites.def"

Value einsum(std::string_view equation, std::span<const Value> operands);
/// Mean over the targets that differ from `ignore_index` of -log softmax(logits)[target]; with label smoothing as
/// torch.nn.functional.cross_entropy. logits [.., classes], targets i64 [..].
Value cross_entropy(const Value& logits, const Value& targets, std::optional<std::int64_t> ignore_index = {},
                    double label_smoothing = 0);
Value dropout(const Value& a, const Value& random_state, double p);
/// softmax(q k^T * scale [+ mask, or where a bool mask is false: -inf]) v; q [.., q, d], k [.., k, d], v [.., k, e].
/// Causal: query i sees keys 0 .. i, with an offset, i64[] or i64[B] for dim 0 of the scores, keys 0 .. offset + i.
Value attention(const Value& q, const Value& k, const Value& v, std::optional<Value> mask, double scale, bool causal,
                bool zero_masked = false, std::optional<Value> offset = {});

}  // namespace lathe::ir
