#pragma once

#include <vector>

#include "ir/kernel/build/builder.h"

namespace lathe::cpu {

/// Lanes of concat(low, high), in units of `unit` lanes.
kernel::Value pick_units(kernel::Builder& b, kernel::Value low, kernel::Value high, int unit,
                         const std::vector<int>& units);

/// The transpose of a square of n vectors of n lanes (n a power of two): result[j] lane i is rows[i] lane j. Works
/// inside 128-bit chunks first and moves whole chunks afterwards, so that every step is one machine shuffle. With
/// `unit` > 1, a lane is so many neighbouring ones.
std::vector<kernel::Value> transpose(kernel::Builder& b, const std::vector<kernel::Value>& rows, int unit = 1);

/// The transpose of n vectors of m lanes (powers of two): m vectors of n lanes, square by square.
std::vector<kernel::Value> transpose_rectangle(kernel::Builder& b, const std::vector<kernel::Value>& rows);

}  // namespace lathe::cpu
