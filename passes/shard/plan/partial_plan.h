#pragma once

#include <optional>
#include <vector>

#include "passes/shard/plan/part_plan.h"

namespace lathe::shard {

/// How a process has a value along an axis: a partial sum, maximum or minimum, its part (a shard), or all of it that
/// the split of dims by name leaves to it (replicated). From left to right is an exchange; from whole to part is
/// none.
enum class Form : unsigned char { partial, part, whole };

/// For one axis of the mesh: in which form each value is computed, and in which others it is needed.
///
/// A partial value is born where an op folds a split dim: a contraction, a reduction, a lookup in a split table; or
/// the dim of which a process has its part. It stays partial through ops that commute with combining: sums of partial
/// values, negation, products with whole values, views. Parts are born where an argument is held as one
/// (passes/shard/plan/part_plan.h), or are taken of what is whole, and stay parts through element-wise ops. Every
/// other reader needs all of the value, once for all of them.
///
/// Where to combine and to gather is the cheapest cut of the values by bytes: two products that are added are
/// combined once after the addition; one that spreads into many is combined where it is born; a conversion to a
/// narrower dtype comes after. A gradient that only updates parts is scattered while it is combined, and what is
/// computed from parts is gathered at the end: states that are split cost no more bytes than whole ones (ZeRO,
/// Rajbhandari et al. 2020).
struct PartialPlan {
  struct Value {
    Form made = Form::whole;
    Form reached = Form::whole;      ///< the last form that a reader needs
    bool as_part = false;            ///< some reader takes it as a part
    bool born = false;               ///< a partial value that is born here: no operand is one
    bool scatters = false;           ///< a cut that makes a part of what is whole before it: it takes partial sums
    std::optional<Combine> combine;  ///< of a partial value
  };
  std::vector<Value> values;  ///< by node

  const Value& operator[](ir::ValueId id) const { return values[static_cast<std::size_t>(id.index)]; }
};

/// Throws UserError [shard_repeat] for a lookup in a split table by positions that are split over the same axis.
PartialPlan plan_partials(const ir::Graph& graph, const SplitPlan& splits, const PartPlan& parts, int axis);

/// The form in which `reader`, computed as planned, takes an operand.
Form form_read(const ir::Graph& graph, const PartPlan& parts, const PartialPlan& plan, ir::ValueId reader,
               ir::ValueId operand);
/// The form in which an output leaves a process: whole only where something else needs it so.
Form form_given(const PartPlan& parts, const PartialPlan& plan, ir::ValueId output);

/// Whether a whole operand of an addition is counted by the first process alone, so that the sum of partial values
/// counts it once: a scalar, for which that is cheaper than to combine these first.
bool adds_once(const ir::Node& node);

}  // namespace lathe::shard
