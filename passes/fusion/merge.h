#pragma once

#include <vector>

#include "passes/fusion/attention/attention_regions.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Merges regions that grew separately. A rows region becomes part of a region that it reads if both have the same
/// domain, every value is read at the point where it is computed, no third region is between them, and the result is
/// not too large (see region_size.h) and gathers few elements (see gathered_reads.h). The moments and the parameter
/// of an optimizer's update become one kernel this way. `reads` is by node.
void merge_regions(FusionPlan& plan, AttentionRegions& attentions, const ir::Graph& graph, const NodeReads& reads,
                   const FusionOptions& options);

/// Whether some members may join a region: copies that are made late only join a region with such copies.
bool may_come_as_early(const ir::NodeMap<bool>& recomputed, const std::vector<ir::ValueId>& members,
                       const std::vector<ir::ValueId>& region);

}  // namespace lathe
