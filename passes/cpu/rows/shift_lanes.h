#pragma once

#include <vector>

#include "ir/kernel/build/builder.h"

namespace lathe::cpu {

/// Moves to each lane of a vector the value `distance` lanes before it, or after it in reverse; that of `filled` if
/// there is no such lane.
inline kernel::Value shift_lanes(kernel::Builder& b, kernel::Value vector, kernel::Value filled, int distance,
                                 bool reverse) {
  const int count = vector.type.lanes;
  std::vector<int> lanes;
  for (int i = 0; i < count; ++i) lanes.push_back(reverse ? i + distance : count - distance + i);
  return reverse ? b.shuffle(vector, filled, lanes) : b.shuffle(filled, vector, lanes);
}

}  // namespace lathe::cpu
