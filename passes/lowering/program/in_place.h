#pragma once

#include <functional>
#include <vector>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Whether the region that computes `value` may write it where `old` lies: it reads `old` only at the element that it
/// then writes there, and no more in a later loop over the row; or it replaces rows of it.
bool may_overwrite(const ir::Graph& graph, const FusionPlan& plan, ir::ValueId value, ir::ValueId old);

/// By node: the value in whose place its region writes it, since nobody reads that one any more; invalid for values
/// with memory of their own. So logits and their gradient, or the gradients on either side of an activation, share
/// one buffer. `temporary` tells which values may give or take memory.
std::vector<ir::ValueId> overwritten_values(const ir::Graph& graph, const FusionPlan& plan,
                                            const std::function<bool(ir::ValueId)>& temporary);

}  // namespace lathe
