#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/op/body.h"

namespace lathe::ir {

/// Two bodies as one.
struct MergedBodies {
  Body body;
  std::vector<int> second;  ///< by output of the second body: its output of the merged one; the first one's stay
};

/// Merges two bodies with equal argument types. Returns nothing if they compute different next values of a carry.
std::optional<MergedBodies> merge_bodies(const Body& first, const Body& second);

}  // namespace lathe::ir
