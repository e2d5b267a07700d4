#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// What runs as one: an attention region stands for the product regions that end it as well.
inline int unit_of(const FusionPlan& plan, int region) {
  const int ends = plan.regions[static_cast<std::size_t>(region)].ends;
  return ends >= 0 ? ends : region;
}

/// Whether one of the regions `from` is in the unit of `target`, or reads it directly or by way of others. `reads` is
/// by node.
bool depends_on(const FusionPlan& plan, const std::vector<std::vector<Read>>& reads, std::vector<int> from,
                int target);

}  // namespace lathe
