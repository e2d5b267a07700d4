#pragma once

#include <vector>

#include "ir/kernel/build/builder.h"

namespace lathe::cpu {

/// Returns the chosen units of concat(low, high); a unit is `unit` adjacent lanes.
kernel::Value pick_units(kernel::Builder& b, kernel::Value low, kernel::Value high, int unit,
                         const std::vector<int>& units);

/// Returns the transpose of n vectors of n lanes (n a power of two): result[j] lane i is rows[i] lane j. Shuffles
/// inside 128-bit chunks first and whole chunks afterwards, so that each step is one machine shuffle. With `unit` >
/// 1, `unit` adjacent lanes move together and count as one lane.
std::vector<kernel::Value> transpose(kernel::Builder& b, const std::vector<kernel::Value>& rows, int unit = 1);

/// Returns the transpose of n vectors of m lanes (powers of two), square by square: m vectors of n lanes.
std::vector<kernel::Value> transpose_rectangle(kernel::Builder& b, const std::vector<kernel::Value>& rows);

}  // namespace lathe::cpu
