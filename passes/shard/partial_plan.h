#pragma once

#include <optional>
#include <vector>

#include "passes/shard/split_plan.h"

namespace lathe::shard {

/// For one axis of the mesh: which values a process computes as its share of a sum, maximum or minimum, and which of
/// them are combined over the axis.
///
/// A share is born where an op folds a split dim: a contraction, a reduction, a lookup in a split table. It stays one
/// through ops that commute with combining: sums of shares, negation, products with whole values, views. Every other
/// reader needs the value combined, once for all of them. Where to combine is the cheapest cut of the values by bytes
/// between where shares are born and where they are needed: two products that are added are combined once after the
/// addition; one that spreads into many is combined where it is born; a conversion to a narrower dtype comes after.
struct PartialPlan {
  struct Share {
    std::optional<Combine> combine;  ///< the process computes its share of this
    bool born = false;               ///< here: the operands are whole along the axis
    bool combined = false;           ///< over the axis, for those that read it combined
  };
  std::vector<Share> shares;  ///< by node

  const Share& operator[](ir::ValueId id) const { return shares[static_cast<std::size_t>(id.index)]; }
};

PartialPlan plan_partials(const ir::Graph& graph, const SplitPlan& splits, int axis);

/// Whether a whole operand of an addition is counted by the first process alone, so that the sum of shares counts it
/// once: a scalar, for which that is cheaper than to combine the shares first.
bool adds_once(const ir::Node& node);

}  // namespace lathe::shard
