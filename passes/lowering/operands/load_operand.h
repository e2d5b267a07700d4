#pragma once

#include <cstdint>
#include <functional>

#include "ir/kernel/build/builder.h"

namespace lathe {

/// The axis along which neighbouring elements of an operand are neighbours in memory. `row` is m of the left operand
/// and n of the right one.
enum class LaneAxis : std::uint8_t { row, k };

/// `lanes` consecutive elements along `axis` of an operand, starting at (batch, row, k), converted to the type that
/// the product computes in. An empty mask: all are in range; where a mask is false, the element is out of range and
/// the result may be anything. `axis` is the operand's own, except that single elements (lanes == 1) come with
/// either.
using LoadOperand = std::function<kernel::Value(kernel::Value batch, kernel::Value row, kernel::Value k,
                                                LaneAxis axis, int lanes, kernel::Value mask)>;

}  // namespace lathe
