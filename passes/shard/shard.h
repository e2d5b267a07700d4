#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/support/location.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/mesh/exchange_kind.h"
#include "passes/shard/placement.h"
#include "passes/shard/predict/predicted_bytes.h"
#include "passes/shard/ring/find_rings.h"
#include "passes/shard/shard_options.h"

/// A graph divided over processes by the names of its dims.
namespace lathe::shard {

/// An exchange of a process's graph, for people.
struct Exchange {
  ir::ExchangeKind kind;
  MeshAxis axis;
  std::string value;           ///< what is exchanged: its type and name
  Dim elements;                ///< of the value where a process has most of it: whole, or partial
  std::int64_t element_bytes;  ///< of each
  Location loc;
  std::string reason;

  Dim bytes() const { return elements * Dim(element_bytes); }
};
/// As a node of a process's graph says it, but for the reason.
Exchange described(const ir::Graph& graph, const ir::Node& exchange);

/// An unknown dim of a whole graph on a process: so many processes share it, each its part under another name.
struct LocalDim {
  std::string local;
  std::int64_t ranks = 1;
};

struct Sharded {
  ir::Graph graph;  ///< that of every process
  Mesh mesh;
  std::map<std::string, Placement> arguments;    ///< by argument
  std::map<std::string, Placement> results;      ///< by output, and by updated state or parameter
  std::vector<Exchange> exchanges;               ///< in the order of the graph
  std::vector<std::string> kept_whole;           ///< parameters with no dim that divides over the axis of the options
  std::vector<GatheredAttention> gathered = {};  ///< with a ring asked for: those of which none can be made
  int rings = 0;                                 ///< attentions whose keys and values go around
  std::map<std::string, LocalDim> unknowns = {};  ///< of the whole graph's types: B is 4*B@data
};

/// The graph that each process of `mesh` runs, so that all together compute what `graph` computes. A dim named in
/// `splits` is split over that axis, and so is every dim that the ops of the graph tie to it. Nothing else is: where
/// an op needs all of a split dim, that is an error, never a gather.
///
///   --split h:model, model=2:   %y: f32[B, T, 512] = contract(%a [B, T, 512], %w [512, 512])
///   ->  %1: f32[B, T, 512] = contract(%a [B, T, _@model=256], %w [d_model@model=256, d_model=512])
///       %2: f32[B, T, 512] = all_reduce %1 {axis="model", ranks=2, combine="sum"}
///
/// `graph` is a whole training step, or any other graph, differentiated already; its composites are expanded. An
/// unknown dim that is split gets a local name: B becomes B@data, and 4*B@data where all of it is meant. Known sizes
/// must divide. The number of nodes does not depend on that of processes. Throws the UserErrors of SplitPlan
/// (passes/shard/plan/split_plan.h), and [mesh_axis] for an axis that the mesh lacks.
Sharded shard(const ir::Graph& graph, const Mesh& mesh, const std::vector<Split>& splits,
              const ShardOptions& options = {});

}  // namespace lathe::shard
