#pragma once

#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/shard/plan/factors.h"

namespace lathe::shard {

/// Factors that the body of a loop of the whole graph needs whole.
struct BlockedInBody {
  ir::ValueId loop;
  FactorList list;
  std::string why;
};

/// Decides which sums in the bodies of loops may be over split factors. Iterations do not communicate, so a process
/// computes a share of the sum. The share may only reach outputs of the body, and carries that add up from zero,
/// through ops that commute with addition: the loop then returns shares, which are added up after it, for all
/// iterations at once. Those are the gradients of the weights of a layer in a loop over layers, and of a loop with
/// checkpoints. Blocks the factors of all other sums.
///
/// Sets FactoredGraph::sums of loops, and adds what it blocks to `blocked`.
void plan_body_sums(const ir::Graph& graph, FactoredGraph& factored, std::vector<BlockedInBody>& blocked);

}  // namespace lathe::shard
