#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/node_map.h"
#include "passes/shard/plan/split_plan.h"

namespace lathe::shard {

/// For one axis of the mesh: the values that a process may hold as a shard although none of their dims is split by
/// name, and the dim that is sharded. These are parameters, and values of the same shape that are elementwise with
/// them (gradients, moments, the updated parameter). Only the arguments in `held` are shards between steps;
/// form_plan.h decides about the others.
struct ShardPlan {
  ir::NodeMap<std::optional<SplitDim>> parts;  ///< by node
  ir::NodeMap<bool> held;                      ///< by node: an argument of which each process holds only its shard
  std::vector<ir::ValueId> kept_whole;         ///< arguments to shard that have no divisible dim

  bool has(ir::ValueId id) const { return parts[id].has_value(); }
  const SplitDim& operator[](ir::ValueId id) const { return *parts[id]; }
  bool is_held(ir::ValueId id) const { return held[id]; }
};

/// Selects the arguments that are shards along an axis between steps.
struct PartKinds {
  /// States that have the shape of a parameter and are elementwise with it.
  bool states = false;
  bool parameters = false;  ///< parameters too
};

/// Plans the shards along an axis. `earlier` has the plans of previous axes, whose shards this one splits further.
/// The sharded dim is the first whose local size is divisible. It is split inside the splits by name and by earlier
/// axes.
ShardPlan plan_parts(const ir::Graph& graph, const SplitPlan& splits, int axis, const PartKinds& kinds,
                     const std::vector<ShardPlan>& earlier);

/// Returns the placement of a value that is sharded along these axes, by axis of the mesh.
Placement placement_of_parts(const SplitPlan& splits, const std::vector<ShardPlan>& plans, ir::ValueId id,
                             const std::vector<bool>& axes);

/// Returns how many blocks of dim `split.dim` a process with this placement holds: split.outer without those of other
/// processes.
Dim held_blocks(const SplitDim& split, const Placement& placement, const Mesh& mesh);

/// Returns the local shape of a value, including the shards of `placement`.
Shape part_shape(const SplitPlan& splits, ir::ValueId id, const Placement& placement);

}  // namespace lathe::shard
