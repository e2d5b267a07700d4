#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/tensor/node_map.h"
#include "passes/fusion/fusion.h"

namespace lathe {

/// Returns whether the region that computes `value` may write it to the memory of `old`. The region must read each
/// element of `old` only when it writes the same element, and not in a later loop over the row, or it must replace
/// rows of `old`.
bool may_overwrite(const ir::Graph& graph, const FusionPlan& plan, ir::ValueId value, ir::ValueId old);

/// Returns, for each node, the dead value whose memory its region reuses, or an invalid id for values with their own
/// memory. For example, logits and their gradient, or the gradients before and after an activation, share a buffer.
/// `temporary` returns whether a value may give or take memory.
ir::NodeMap<ir::ValueId> overwritten_values(const ir::Graph& graph, const FusionPlan& plan,
                                            const std::function<bool(ir::ValueId)>& temporary);

/// Places the shards of all-gathered state updates. If one region computes a shard, and no other region still reads
/// the old state, the shard is written directly to its place in the old state. The all-gather then only receives the
/// other shards. The placement of such shards in `plan` becomes the gathered value and an offset. `updates` are the
/// updates whose values overwrite the old ones. `temporary` returns whether a value may be placed elsewhere.
void place_gathered_parts(const ir::Graph& graph, std::span<const ir::Update> updates,
                          const std::function<bool(ir::ValueId)>& temporary, FusionPlan& plan);

}  // namespace lathe
