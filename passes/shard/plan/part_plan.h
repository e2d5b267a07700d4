#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/shard/plan/split_plan.h"

namespace lathe::shard {

/// For one axis of the mesh: the values that a process may hold as a part although no dim of theirs is split by name:
/// parameters, what has their shape and is element-wise with them (gradients, moments, the updated parameter), and
/// on which dim. Only the arguments of `held` lie as parts between steps; of the others partial_plan.h decides.
struct PartPlan {
  std::vector<std::optional<SplitDim>> parts;  ///< by node
  std::vector<bool> held;                      ///< by node: an argument of which each process has its part alone
  std::vector<ir::ValueId> kept_whole;         ///< arguments that were to be parts and have no dim that divides

  bool has(ir::ValueId id) const { return parts[static_cast<std::size_t>(id.index)].has_value(); }
  const SplitDim& operator[](ir::ValueId id) const { return *parts[static_cast<std::size_t>(id.index)]; }
  bool is_held(ir::ValueId id) const { return held[static_cast<std::size_t>(id.index)]; }
};

/// What lies as parts along an axis between steps.
struct PartKinds {
  bool states = false;      ///< those that have the shape of a parameter and are element-wise with it
  bool parameters = false;  ///< and parameters
};

/// `earlier` are the plans of the axes before, whose parts this one divides further. The dim is the first whose size
/// on a process divides; it is divided inside of what names and earlier axes divide it into.
PartPlan plan_parts(const ir::Graph& graph, const SplitPlan& splits, int axis, const PartKinds& kinds,
                    const std::vector<PartPlan>& earlier);

/// Where a value lies whose parts along these axes are held, by axis of the mesh.
Placement placement_of_parts(const SplitPlan& splits, const std::vector<PartPlan>& plans, ir::ValueId id,
                             const std::vector<bool>& axes);

/// How many blocks of dim `split.dim` a process holds that lies as `placement`: split.outer without what others hold.
Dim held_blocks(const SplitDim& split, const Placement& placement, const Mesh& mesh);

/// The local shape of a value, the parts of `placement` included.
Shape part_shape(const SplitPlan& splits, ir::ValueId id, const Placement& placement);

}  // namespace lathe::shard
