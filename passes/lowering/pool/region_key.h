#pragma once

#include <string>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// What lowering a region depends on. Regions with equal texts, such as those of identical layers, lower to the same
/// kernels, each over its own buffers and draws: a kernel of one that takes buffers[i] takes buffers[i] of the other,
/// and so the argument salts[i].
struct RegionKey {
  std::string text;  ///< of nodes and buffers by number, with everything that the graph and the plan say of them
  std::vector<int> buffers;         ///< program buffers by number
  std::vector<std::int64_t> salts;  ///< of the streams that it draws from, in the order of their draws
};

/// The key of a region: its members and what they compute again in place, down to the values in memory. Nodes and
/// buffers are numbered in their order in the graph and the program, so that an order among them shows too. Bytes,
/// not for reading.
RegionKey region_key(const LoweringContext& context, const Region& region);

}  // namespace lathe
