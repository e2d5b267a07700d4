#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Sorts the regions of a plan so that each comes after those that it reads, and otherwise as early as the graph
/// position of its last member; renumbers region_of. Readers of a state come before the region that computes its
/// update, unless that is impossible: plan.last_reader_first shows for which updates it holds. Updates that use sums
/// over processes come after two buckets of later sums (update_times.h). `reads` is by node.
void order_regions(FusionPlan& plan, const ir::Graph& graph, const NodeReads& reads);

/// Returns by update whether all readers of the old state run before the region that computes the new value: that is
/// FusionPlan::last_reader_first.
std::vector<bool> last_readers_first(const FusionPlan& plan, const ir::Graph& graph, const NodeReads& reads);

}  // namespace lathe
