#pragma once

#include <memory>
#include <span>

#include "passes/lowering/attention/attention_parts.h"
#include "passes/lowering/attention/column_bounds.h"

namespace lathe {

/// Returns the largest absolute value of an operand's elements at positions [first, last), or NaN if one of them is
/// NaN.
kernel::Value largest_magnitude(kernel::Builder& b, OperandLoader& loader, kernel::Value outer, kernel::Value first,
                                kernel::Value last, int lanes);

/// Returns the operands whose largest absolute values largest_score_bound needs. Some may have the same elements.
std::vector<const AttentionOperand*> bounded_operands(const AttentionParts& parts, const ColumnBounds& bounds);

/// Returns an upper bound, at least 1, of the absolute values of all scores that matter and of the elements of the
/// output matmuls' other operands. The bound is infinite or NaN if one of these operands has infinite or NaN
/// elements. `largest` returns the largest absolute value of an operand's elements.
kernel::Value largest_score_bound(KernelContext& context, const AttentionParts& parts, const ColumnBounds& bounds,
                                  const std::function<kernel::Value(const AttentionOperand&)>& largest);

/// Tile-skip check: returns whether every row of a row block meets ColumnBounds::checks, given that no score exceeds
/// `largest_score` in absolute value.
kernel::Value rows_allow_skip(ElementwiseEmitter& emitter, const ColumnBounds& bounds,
                              std::span<const std::unique_ptr<ElementwiseEmitter::Scope>> rows,
                              kernel::Value largest_score);

}  // namespace lathe
