#pragma once

#include <optional>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Returns the position of an index space of shape `space` in a region's domain, based on the members that it reads:
/// for each of its dims the domain dim that it runs along, or -1 if its size is 1. Returns nothing if a member would
/// be read at another index than the one it is computed at, if no member is read, or if the space covers neither the
/// whole domain nor exactly its outer (not reduced) dims.
std::optional<std::vector<int>> align(const ir::Graph& graph, const FusionPlan& plan, const Region& region,
                                      const Shape& space, const std::vector<Read>& reads);

/// Whether dims returned by align() cover the whole domain, and not only its outer dims.
bool covers_domain(const Region& region, const std::vector<int>& dims);

}  // namespace lathe
