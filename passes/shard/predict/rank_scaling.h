#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/shard/predict/held_bytes.h"
#include "passes/shard/predict/step_time.h"

/// How a step is predicted to go on more and more processes.
namespace lathe::shard {

/// What a graph takes once it is compiled for a machine, by the sizes of its dims: time, and bytes of memory.
struct CompiledStep {
  std::function<StepTime(const DimBindings&)> time;
  std::function<std::int64_t(const DimBindings&)> held;
};

/// A division to scale. `dims` are sizes of the whole graph on `mesh`, of which B = 32 on data=4 means 8 a process.
struct Scaling {
  Mesh mesh;
  std::vector<Split> splits;
  ShardOptions parts = {};
  std::string growing;  ///< the axis of the mesh that has 1, 2, 4, ... processes; the others keep theirs
  DimBindings dims;
  StepRates rates = {};
  std::int64_t most_ranks = 4096;
  /// What a process computes of its graph, in the order in which it runs (passes/run_order.h); without one: all, as
  /// it stands.
  std::function<ir::Graph(const ir::Graph&)> order = {};
  /// Compiles a graph for a machine (passes/explain/program_time.h), which gives times and memory instead: of GPUs.
  std::function<CompiledStep(const ir::Graph&)> compile = {};
};

/// A step on one mesh.
struct ScalingPoint {
  Mesh mesh;
  StepTime time;
  double efficiency = 0;  ///< the products of the undivided graph, of what all processes could compute in that time
  SentBytes sent = {};    ///< by process 0, which sends most
  int kept_whole = 0;     ///< parameters that were to lie in parts and have no dim that divides
  /// Bytes a process: parameters, states, inputs, and the most gathered at a time; of a compiled step those of
  /// its plan, with all temporaries.
  std::int64_t held = 0;
};

struct ScalingCurve {
  std::vector<ScalingPoint> points;
  std::string stopped;  ///< why there is none for more processes: the error of the next mesh; "" at most_ranks
};

/// The sizes of a process, of those of the whole graph that are given: B = 32 on data=4 makes B@data = 8. Throws
/// UserError [mesh_divide] for one that does not divide.
DimBindings local_dims(const Sharded& sharded, const DimBindings& whole);

/// One process first, then `growing` of 1, 2, 4, ... beside the other axes as they are. Unknown dims that are split
/// over `growing` grow with it, so that a process's part stays what it is on `mesh`; all others stay. Throws the
/// errors of shard() and local_dims() for `mesh` itself, UserError [dim_unbound] for a size that is not given, and
/// [mesh_axis] for an axis that the mesh lacks.
ScalingCurve predict_scaling(const ir::Graph& graph, const Scaling& scaling);

}  // namespace lathe::shard
