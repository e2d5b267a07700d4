#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Sorts the regions of a plan so that each comes after those it reads, and otherwise as early as its last member
/// stands in the graph; renumbers region_of. Readers of a state come before the region that computes its update,
/// unless that is impossible: plan.last_reader_first says for which updates it holds. Updates by what processes sum
/// come behind two buckets of later sums (update_times.h). `reads` is by node.
void order_regions(FusionPlan& plan, const ir::Graph& graph, const std::vector<std::vector<Read>>& reads);

}  // namespace lathe
