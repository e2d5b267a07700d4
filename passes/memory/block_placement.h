#pragma once

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Gives every block an offset so that those that live at the same time lie apart, and returns the end of the last.
/// Memory is filled from below: the lowest segment, as wide as the launches for which it is the lowest, takes the
/// block of largest bytes * lifetime of those that live within it; where none does, it is levelled with its lower
/// neighbour (Sekiyama et al. 2018, "Profile-guided memory optimization for deep neural networks"). Other powers of
/// the lifetime are tried until nothing is wasted against `lower_bound`, the most that is live at one launch; the
/// best counts.
std::int64_t place_blocks(std::vector<MemoryPlan::Block>& blocks, std::int64_t lower_bound);

}  // namespace lathe
