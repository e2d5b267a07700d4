#pragma once

#include <cstdint>
#include <functional>

#include "ir/kernel/build/builder.h"

namespace lathe {

/// The axis along which adjacent elements of an operand are contiguous in memory. `row` is m of the left operand and
/// n of the right one.
enum class LaneAxis : std::uint8_t { row, k };

/// Loads `lanes` consecutive elements along `axis` of an operand, starting at (batch, row, k), converted to the
/// matmul's compute type. An empty mask means that all elements are in range. Lanes with a false mask are out of
/// range and may return any value. `axis` must be the operand's own axis, except that single elements (lanes == 1)
/// accept both.
using LoadOperand = std::function<kernel::Value(kernel::Value batch, kernel::Value row, kernel::Value k,
                                                LaneAxis axis, int lanes, kernel::Value mask)>;

}  // namespace lathe
