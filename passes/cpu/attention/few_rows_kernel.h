#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe::cpu {

/// An attention of so few rows that they fill no vector: of one query, as a step of generation has it, or of the
/// queries that share their keys. Lanes run along the columns, in products along the depth, and all rows go together,
/// so that keys and values are read once. Nothing where the rows are many, or sums go over them.
///
/// A task takes all columns of an outer index. Where these are too few to share out, it takes a part of the columns,
/// with the maximum of this part, and a second kernel combines the parts in their order: how many there are follows
/// from the shape.
std::optional<std::vector<KernelContext::Built>> lower_few_rows(const LoweringContext& context, const Region& region);

}  // namespace lathe::cpu
