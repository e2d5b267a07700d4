#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/dtype.h"
#include "passes/lowering/lower.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

/// A step of compilation by its name: a pass, or what ends in something else than a graph, or needs what does.
struct Stage {
  std::string name;
  std::string doc;
};

/// What a graph becomes as a whole before the passes below, where a program asks for it.
struct WholeGraph {
  std::optional<DType> dtype = {};          ///< "dtype": of its f32 values (passes/transforms/convert_dtype.h)
  std::optional<DType> low_precision = {};  ///< "mixed-bf16", "mixed-f16": passes/transforms/mixed_precision.h
  DimBindings sizes = {};                   ///< "known-sizes", where there are some: passes/transforms/known_sizes.h
  bool evaluation = false;                  ///< "evaluation": passes/transforms/evaluation.h
  /// "shard", with the processes of a mesh: what divides it (passes/shard/shard.h).
  std::function<ir::Graph(const ir::Graph&)> divide = {};
  bool ring = false;  ///< "ring", keys and values go around: passes/shard/ring/ring_attention.h
};
/// The passes that make it so, in this order.
ir::Pipeline whole_graph_pipeline(const WholeGraph& asked);
/// Every stage that there may be among them.
std::vector<Stage> whole_graph_stages();

/// Every pass that a graph goes through on its way to a machine's kernels, in order: default_pipeline(), then
/// machine_passes(). lower_prepared() takes what comes out.
ir::Pipeline compile_pipeline(const Machine& machine, const LowerOptions& options = {});

/// A graph as any machine may come to compute it, every attention fused: for ir::ExpectOptions::rewrite, which asks
/// what roundings do then.
ir::Graph as_fused(const ir::Graph& graph);

/// What follows the passes, in order: rematerialize, where the machine keeps memory budgets; fuse, kernels,
/// exchanges, memory-plan.
std::vector<Stage> lowering_stages(const Machine& machine);

}  // namespace lathe
