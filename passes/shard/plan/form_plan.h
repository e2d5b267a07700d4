#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/node_map.h"
#include "passes/shard/plan/shard_plan.h"

namespace lathe::shard {

/// The form of a value on a process along an axis: a partial sum, maximum or minimum; its shard; or the whole value
/// that the splits by name leave to it (replicated). A conversion from left to right needs communication; one from
/// whole to shard needs none.
enum class Form : unsigned char { partial, part, whole };

/// For one axis of the mesh: the form in which each value is computed, and the forms in which it is needed.
///
/// A partial value originates where an op folds a split dim (a contraction, a reduction, a lookup in a sharded
/// table), or a dim of which a process has a shard. It stays partial through ops that commute with combining: sums of
/// partial values, negation, products with whole values, views. Shards originate where an argument is held as a shard
/// (passes/shard/plan/shard_plan.h), or are sliced from whole values, and stay shards through elementwise ops. Every
/// other reader needs the whole value, which is computed once for all of them.
///
/// The places to combine and to gather are the cheapest cut of the values, by bytes. Two matmuls that are added are
/// combined once, after the addition; one that is broadcast is combined at its origin; a conversion to a narrower
/// dtype follows the combination. A gradient that only updates shards is reduce-scattered, and values computed from
/// shards are gathered at the end. Sharded states therefore cost no more bytes than whole ones (ZeRO, Rajbhandari et
/// al. 2020).
struct FormPlan {
  struct Value {
    Form made = Form::whole;
    Form reached = Form::whole;  ///< the last form that a reader needs
    bool as_part = false;        ///< some reader needs it as a shard
    bool born = false;           ///< a partial value that originates here: no operand is partial
    /// A cut that turns a whole value into a shard: it accepts partial sums.
    bool scatters = false;
    std::optional<Combine> combine;  ///< of a partial value
  };
  ir::NodeMap<Value> values;  ///< by node

  const Value& operator[](ir::ValueId id) const { return values[id]; }
};

/// Throws UserError [shard_repeat] for a lookup in a sharded table by positions that are split over the same axis.
FormPlan plan_partials(const ir::Graph& graph, const SplitPlan& splits, const ShardPlan& parts, int axis);

/// Returns the form in which `reader`, computed as planned, reads an operand.
Form form_read(const ir::Graph& graph, const ShardPlan& parts, const FormPlan& plan, ir::ValueId reader,
               ir::ValueId operand);
/// Returns the form in which a process returns an output: whole only if another reader needs it whole.
Form form_given(const ShardPlan& parts, const FormPlan& plan, ir::ValueId output);

/// Whether only the first process adds a whole operand of an addition, so that the sum of partial values contains it
/// once. This applies to scalars, for which it is cheaper than combining the partial values first.
bool adds_once(const ir::Node& node);

}  // namespace lathe::shard
