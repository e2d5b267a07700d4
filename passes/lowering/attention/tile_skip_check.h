#pragma once

#include <memory>
#include <span>

#include "passes/lowering/attention/attention_parts.h"
#include "passes/lowering/attention/column_bounds.h"

namespace lathe {

/// The largest magnitude of an operand's elements at positions first .. last; NaN if one of them is.
kernel::Value largest_magnitude(kernel::Builder& b, OperandLoader& loader, kernel::Value outer, kernel::Value first,
                                kernel::Value last, int lanes);

/// The operands whose largest magnitudes largest_score_bound asks for; some may have the same elements.
std::vector<const AttentionOperand*> bounded_operands(const AttentionParts& parts, const ColumnBounds& bounds);

/// A bound of every score that matters, at least 1; infinite or NaN where an element of an operand is out of bounds.
/// `largest`: the largest magnitude of an operand's elements.
kernel::Value largest_score_bound(KernelContext& context, const AttentionParts& parts, const ColumnBounds& bounds,
                                  const std::function<kernel::Value(const AttentionOperand&)>& largest);

/// The tile-skip check: whether every row of a row block meets ColumnBounds::checks, no score being larger than
/// `largest_score`.
kernel::Value rows_allow_skip(ElementwiseEmitter& emitter, const ColumnBounds& bounds,
                              std::span<const std::unique_ptr<ElementwiseEmitter::Scope>> rows,
                              kernel::Value largest_score);

}  // namespace lathe
