#pragma once

#include <optional>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Where an index space of shape `space` lies in a region's domain, judged by the members that it reads: for each of
/// its dims the domain dim that it runs along, -1 where its size is 1. Nothing where a member would be read at
/// another index than the one it is computed at, where no member is read, or where the space covers neither the whole
/// domain nor exactly its outer (not reduced) dims.
std::optional<std::vector<int>> align(const ir::Graph& graph, const FusionPlan& plan, const Region& region,
                                      const Shape& space, const std::vector<Read>& reads);

/// Whether dims given by align() cover the whole domain, rather than its outer dims alone.
bool covers_domain(const Region& region, const std::vector<int>& dims);

}  // namespace lathe
