#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Sorts the regions of a plan so that each comes after those it reads, and otherwise as early as its last member
/// stands in the graph; renumbers region_of. `reads` is by node.
void order_regions(FusionPlan& plan, const std::vector<std::vector<Read>>& reads);

}  // namespace lathe
