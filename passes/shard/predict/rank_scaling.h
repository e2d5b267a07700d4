#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/shard/predict/held_bytes.h"
#include "passes/shard/predict/step_time.h"

/// Predicts how a step scales to more processes.
namespace lathe::shard {

/// The cost of a graph that is compiled for a machine, by the sizes of its dims: time, and bytes of memory.
struct CompiledStep {
  std::function<StepTime(const DimBindings&)> time;
  std::function<std::int64_t(const DimBindings&)> held;
};

/// A sharding to scale. `dims` are sizes of the global graph on `mesh`: B = 32 on data=4 means 8 per process.
struct Scaling {
  Mesh mesh;
  std::vector<Split> splits;
  ShardOptions parts = {};
  std::string growing;  ///< the axis of the mesh that has 1, 2, 4, ... processes; the others are fixed
  DimBindings dims;
  StepRates rates = {};
  std::int64_t most_ranks = 4096;
  /// Returns the nodes that a process computes, in the order in which they run (passes/compile/run_order.h). If not
  /// set: all nodes, in graph order.
  std::function<ir::Graph(const ir::Graph&)> order = {};
  /// Compiles a graph for a machine (passes/compile/program_time.h), which then gives times and memory. For GPUs.
  std::function<CompiledStep(const ir::Graph&)> compile = {};
};

/// A step on one mesh.
struct ScalingPoint {
  Mesh mesh;
  StepTime time;
  double efficiency = 0;  ///< time of the unsharded graph's matmuls / (time of the step * processes)
  SentBytes sent = {};    ///< by process 0, which sends most
  int kept_whole = 0;     ///< parameters to be sharded that have no dim that divides
  /// Bytes per process: parameters, states, inputs, and the maximum of gathered values at a time. For a compiled step
  /// those of its plan, with all temporaries.
  std::int64_t held = 0;
};

struct ScalingCurve {
  std::vector<ScalingPoint> points;
  /// Why there are no points for more processes: the error of the next mesh. Empty at most_ranks.
  std::string stopped;
};

/// Returns the local sizes, from those of the global graph that are given: B = 32 on data=4 gives B@data = 8. Throws
/// UserError [mesh_divide] for a size that does not divide.
DimBindings local_dims(const Sharded& sharded, const DimBindings& whole);

/// Starts with one process, followed by `growing` of 1, 2, 4, ... with the other axes fixed. Unknown dims that are
/// split over `growing` grow with it, so that the shard of a process stays as on `mesh`; all others are fixed. Throws
/// the errors of shard() and local_dims() for `mesh` itself, UserError [dim_unbound] for a size that is not given,
/// and [mesh_axis] for an axis that the mesh lacks.
ScalingCurve predict_scaling(const ir::Graph& graph, const Scaling& scaling);

}  // namespace lathe::shard
