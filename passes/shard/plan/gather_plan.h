#pragma once

#include <span>
#include <vector>

#include "ir/tensor/node_map.h"
#include "passes/shard/plan/form_plan.h"

namespace lathe::shard {

/// Returns, by node, the values that are gathered again for the readers in the gradient instead of being kept since
/// the forward pass. They have another gathered value that is read between their last reader there and their first
/// reader in the gradient. Otherwise the second gather would hold the same bytes as the first, so the value is kept
/// and not sent again. Values with less than a hundredth of the bytes are ignored, such as a vector that a kernel
/// reads next to a matrix.
///
///   logits = contract(x, wte), loss, d logits, d x = contract(d logits, wte)      ->  kept
///   c = contract(b, w), logits = contract(x, wte), .., d b = contract(d c, w)     ->  w is gathered again
///
/// `parts` and `partials` are by axis of the mesh.
ir::NodeMap<bool> plan_second_gathers(const ir::Graph& graph, const SplitPlan& splits,
                                      std::span<const ShardPlan> parts, std::span<const FormPlan> partials);

}  // namespace lathe::shard
