#pragma once

#include <string>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// Identifies everything that lowering a region depends on. Regions with equal texts, such as those of identical
/// layers, lower to the same kernels over their own buffers and random streams. Where one uses buffers[i] or
/// salts[i], the other uses its own entry i.
struct RegionKey {
  std::string text;                 ///< nodes and buffers by number, with all graph and plan data about them
  std::vector<int> buffers;         ///< program buffers by number
  std::vector<std::int64_t> salts;  ///< of its random streams, in order of the draws
};

/// Returns the key of a region: its members and the values that they inline, up to values in memory. Nodes and
/// buffers are numbered in graph and program order, so the key also captures their order. The text is binary.
RegionKey region_key(const LoweringContext& context, const Region& region);

}  // namespace lathe
