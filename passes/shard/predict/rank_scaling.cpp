#include "passes/shard/predict/rank_scaling.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "passes/shard/predict/product_flops.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Returns how many processes share an unknown dim of the global graph.
std::int64_t shared_by(const Sharded& sharded, const std::string& unknown) {
  const auto found = sharded.unknowns.find(unknown);
  return found == sharded.unknowns.end() ? 1 : found->second.ranks;
}

class ScalingPrediction {
 public:
  ScalingPrediction(const Graph& graph, const Scaling& scaling)
      : graph_(dce(expand(graph))), scaling_(scaling), given_(divided(scaling.mesh)) {
    for (const auto& [name, part] : given_.unknowns)
      if (!scaling.dims.contains(name))
        throw UserError(fmt::format("the size of dim {} is not given", name), "dim_unbound",
                        fmt::format("give that of the whole mesh, as in --dim {}=32", name));
    (void)local_dims(given_, scaling.dims);
    if (scaling.compile) undivided_ = scaling.compile(graph_);
  }

  ScalingCurve run() {
    const Mesh first = grown(1);
    if (first.size() > 1) {
      std::vector<MeshAxis> alone = first.axes();
      for (MeshAxis& axis : alone) axis.ranks = 1;
      curve_.points.push_back(point(divided(Mesh(alone)), scaled_dims(divided(first))));
    }
    for (std::int64_t ranks = 1; ranks * first.size() <= scaling_.most_ranks; ranks *= 2) {
      try {
        const Sharded sharded = divided(grown(ranks));
        curve_.points.push_back(point(sharded, scaled_dims(sharded)));
      } catch (const UserError& error) {
        curve_.stopped = error.what();
        break;
      }
    }
    return std::move(curve_);
  }

 private:
  Sharded divided(const Mesh& mesh) const { return shard(graph_, mesh, scaling_.splits, scaling_.parts); }

  Mesh grown(std::int64_t ranks) const {
    std::vector<MeshAxis> axes = scaling_.mesh.axes();
    axes[scaling_.mesh.find(scaling_.growing)].ranks = ranks;
    return {axes};
  }

  /// Returns the sizes of the global graph on another mesh: dims that are split over the growing axis grow with it.
  DimBindings scaled_dims(const Sharded& sharded) const {
    DimBindings dims = scaling_.dims;
    for (auto& [name, size] : dims) size = size / shared_by(given_, name) * shared_by(sharded, name);
    return dims;
  }

  ScalingPoint point(const Sharded& sharded, const DimBindings& whole) const {
    const DimBindings dims = local_dims(sharded, whole);
    ScalingPoint point{.mesh = sharded.mesh, .time = {}};
    const double needed =
        scaling_.compile ? by_machine(sharded, dims, whole, point) : by_graph(sharded, dims, whole, point);
    const double possible = point.time.step() * static_cast<double>(sharded.mesh.size());
    point.efficiency = possible > 0 ? needed / possible : 1;
    point.sent = bytes_sent(sharded, 0, dims);
    point.kept_whole = static_cast<int>(sharded.kept_whole.size());
    return point;
  }
  /// Sets time and memory; returns the seconds of the unsharded graph's matmuls.
  double by_graph(const Sharded& sharded, const DimBindings& dims, const DimBindings& whole,
                  ScalingPoint& point) const {
    const Graph run = scaling_.order ? scaling_.order(sharded.graph) : sharded.graph;
    point.time = step_time(run, scaling_.rates, dims);
    point.held = held_bytes(sharded.graph).all().evaluate(dims);
    return product_flops(graph_, whole) / scaling_.rates.flops;
  }
  double by_machine(const Sharded& sharded, const DimBindings& dims, const DimBindings& whole,
                    ScalingPoint& point) const {
    const CompiledStep step = scaling_.compile(sharded.graph);
    point.time = step.time(dims);
    point.held = step.held(dims);
    return undivided_.time(whole).products;
  }

  Graph graph_;
  const Scaling& scaling_;
  Sharded given_;
  CompiledStep undivided_;  ///< set if there is a machine to compile for
  ScalingCurve curve_;
};

}  // namespace

DimBindings local_dims(const Sharded& sharded, const DimBindings& whole) {
  DimBindings local;
  for (const auto& [name, part] : sharded.unknowns) {
    const auto given = whole.find(name);
    if (given == whole.end()) continue;
    if (given->second % part.ranks != 0)
      throw UserError(fmt::format("{}={} does not divide over {} processes", name, given->second, part.ranks),
                      "mesh_divide", fmt::format("give a multiple of {}", part.ranks));
    local[part.local] = given->second / part.ranks;
  }
  return local;
}

ScalingCurve predict_scaling(const Graph& graph, const Scaling& scaling) {
  (void)scaling.mesh.find(scaling.growing);
  return ScalingPrediction(graph, scaling).run();
}

}  // namespace lathe::shard
