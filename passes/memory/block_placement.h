#pragma once

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Gives every block an offset so that blocks that are live at the same time do not overlap, and returns the end of
/// the last one. Memory is filled from the bottom. The lowest segment, over the launches for which it is the lowest,
/// takes the block with the largest bytes * lifetime of those that live within it. If there is none, it is raised to
/// its lower neighbor (Sekiyama et al. 2018, "Profile-guided memory optimization for deep neural networks"). Other
/// powers of the lifetime are tried until nothing is wasted compared to `lower_bound`, the maximum that is live at
/// one launch. The best placement is used.
std::int64_t place_blocks(std::vector<MemoryPlan::Block>& blocks, std::int64_t lower_bound);

}  // namespace lathe
