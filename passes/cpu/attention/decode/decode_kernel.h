#pragma once

#include <optional>
#include <vector>

#include "passes/cpu/cpu_context.h"

namespace lathe::cpu {

/// Lowers an attention whose rows are too few to fill a vector: one query, as in a decode step, or the queries that
/// share their keys. Lanes run along the columns, or along the depth in matmuls. All rows are processed together, so
/// that keys and values are read once. Returns nothing if the rows are many or if sums go over them.
///
/// A task processes all columns of an outer index. If there are fewer outer indices than cores, a task processes one
/// part of the columns, with the maximum of this part, and a second kernel combines the parts in order. The number of
/// parts depends on the shape and the number of cores.
std::optional<std::vector<KernelContext::Built>> lower_decode(const CpuContext& context, const Region& region);

}  // namespace lathe::cpu
