#pragma once

#include <vector>

#include "ir/tensor/builder.h"

namespace lathe::ir {

/// Whether a value is a pad at a known index of an operand whose size along the padded dim is known: the gradient of
/// a slice with known bounds.
bool is_known_pad(const Value& value);

/// Returns the sum of known pads of one shape. Operands that do not overlap become one concat with zeros in the gaps,
/// and operands of the same range are added first. Time and memory are linear in the elements of the result and of
/// the operands, times the most operands that overlap at one index. Differs from a chain of additions only in the
/// order of additions and the sign of zeros.
Value sum_of_known_pads(const std::vector<Value>& pads);

}  // namespace lathe::ir
