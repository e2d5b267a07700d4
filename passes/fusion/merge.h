#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Joins regions that grew apart: a rows region becomes part of the region that it reads where both run over the same
/// domain, every value is read at the point where it is computed, no third region stands between them, and both
/// together are not too large (see region_size.h). The moments and the parameter of an optimizer's update become one
/// kernel this way. `reads` is by node, `recomputed` as in FusionOptions.
void merge_regions(FusionPlan& plan, const ir::Graph& graph, const std::vector<std::vector<Read>>& reads,
                   const std::vector<bool>& recomputed);

/// Whether some members may join a region: copies that are made late only join one that has such copies.
bool may_come_as_early(const std::vector<bool>& recomputed, const std::vector<ir::ValueId>& members,
                       const std::vector<ir::ValueId>& region);

}  // namespace lathe
