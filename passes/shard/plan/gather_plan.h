#pragma once

#include <span>
#include <vector>

#include "passes/shard/plan/partial_plan.h"

namespace lathe::shard {

/// The values, by node, that are gathered once more for the readers in the gradient instead of being kept since the
/// forward pass: those between whose last reader there and first reader in the gradient another gathered value is
/// read. Where none is, the second gather would hold the same bytes as the first: the value is kept, and not sent
/// again. One of less than a hundredth of the bytes does not count, such as a vector that a kernel reads beside a
/// matrix.
///
///   logits = contract(x, wte), loss, d logits, d x = contract(d logits, wte)      ->  kept
///   c = contract(b, w), logits = contract(x, wte), .., d b = contract(d c, w)     ->  w is gathered again
///
/// `parts` and `partials` are by axis of the mesh.
std::vector<bool> plan_second_gathers(const ir::Graph& graph, const SplitPlan& splits,
                                      std::span<const PartPlan> parts, std::span<const PartialPlan> partials);

}  // namespace lathe::shard
