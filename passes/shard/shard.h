#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/mesh/placement.h"
#include "ir/mesh/shard_options.h"
#include "ir/support/location.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/mesh/collective_kind.h"
#include "passes/shard/predict/predicted_bytes.h"
#include "passes/shard/ring/find_rings.h"

/// Shards a graph over processes by the names of its dims.
namespace lathe::shard {

/// A collective of a process's graph, for people.
struct Collective {
  ir::CollectiveKind kind;
  MeshAxis axis;
  std::string value;           ///< type and name of the value
  Dim elements;                ///< of the value in its largest form on a process: whole, or partial
  std::int64_t element_bytes;  ///< per element
  Location loc;
  std::string reason;

  Dim bytes() const { return elements * Dim(element_bytes); }
};
/// Describes a collective of a process's graph, without the reason.
Collective described(const ir::Graph& graph, const ir::Node& collective);

/// An unknown dim of the global graph on a process: `ranks` processes share it, each with a part under the name
/// `local`.
struct LocalDim {
  std::string local;
  std::int64_t ranks = 1;
};

struct Sharded {
  ir::Graph graph;  ///< of every process
  Mesh mesh;
  std::map<std::string, Placement> arguments;  ///< by argument
  std::map<std::string, Placement> results;    ///< by output, and by updated state or parameter
  std::vector<Collective> collectives;         ///< in the order of the graph
  std::vector<std::string> kept_whole;         ///< parameters without a dim that divides over the axis of the options
  std::vector<GatheredAttention> gathered = {};   ///< if rings are requested: attentions that cannot use one
  int rings = 0;                                  ///< ring attentions
  std::map<std::string, LocalDim> unknowns = {};  ///< of the global graph's types: B is 4*B@data
};

/// Returns the graph that each process of `mesh` runs, so that all processes together compute `graph`. A dim named in
/// `splits` is split over its axis, and so is every dim that the ops of the graph tie to it. Nothing else is split:
/// an op that needs all of a split dim is an error, never a gather.
///
///   --split h:model, model=2:   %y: f32[B, T, 512] = contract(%a [B, T, 512], %w [512, 512])
///   ->  %1: f32[B, T, 512] = contract(%a [B, T, _@model=256], %w [d_model@model=256, d_model=512])
///       %2: f32[B, T, 512] = all_reduce %1 {axis="model", ranks=2, combine="sum"}
///
/// `graph` is a whole training step, or any other graph, already differentiated; its composites are expanded. An
/// unknown dim that is split gets a local name: B becomes B@data, and 4*B@data where all of it is meant. Known sizes
/// must divide. Without rings, the number of nodes does not depend on the number of processes. Throws the UserErrors
/// of SplitPlan (passes/shard/plan/split_plan.h), and [mesh_axis] for an axis that the mesh lacks.
Sharded shard(const ir::Graph& graph, const Mesh& mesh, const std::vector<Split>& splits,
              const ShardOptions& options = {});

}  // namespace lathe::shard
