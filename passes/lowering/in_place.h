#pragma once

#include <functional>
#include <span>
#include <vector>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Returns whether the region that computes `value` may write it to the memory of `old`. The region must read each
/// element of `old` only when it writes the same element, and not in a later loop over the row, or it must replace
/// rows of `old`.
bool may_overwrite(const ir::Graph& graph, const FusionPlan& plan, ir::ValueId value, ir::ValueId old);

/// By node: the value in whose place its region writes it, since nobody reads that one any more; invalid for values
/// with memory of their own. So logits and their gradient, or the gradients on either side of an activation, share
/// one buffer. `temporary` tells which values may give or take memory.
std::vector<ir::ValueId> overwritten_values(const ir::Graph& graph, const FusionPlan& plan,
                                            const std::function<bool(ir::ValueId)>& temporary);

/// The new value of a state that processes gather from their parts, each of which one region makes: a part is written
/// where it lies in the old value, when nobody else reads that any more, and the gather moves what comes from others
/// alone. Such parts get their placement in `plan`: the gathered value and an offset in it. `updates` are those whose
/// values are written over the old ones; `temporary` tells which values may have another place.
void place_gathered_parts(const ir::Graph& graph, std::span<const ir::Update> updates,
                          const std::function<bool(ir::ValueId)>& temporary, FusionPlan& plan);

}  // namespace lathe
