#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/lowering/lower.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

/// What a graph goes through as a whole before the passes below, where a program asks for it: "evaluation" for
/// Mode::evaluation, and "shard" with the processes of a mesh, by what divides it (passes/shard/shard.h; empty: not
/// divided).
ir::Pipeline whole_graph_pipeline(bool evaluation, std::function<ir::Graph(const ir::Graph&)> divide);

/// Every pass that a graph goes through on its way to a machine's kernels, in order: default_pipeline(), then
/// machine_passes(). lower_prepared() takes what comes out.
ir::Pipeline compile_pipeline(const Machine& machine, const LowerOptions& options = {});

/// A graph as any machine may come to compute it, every attention fused: for ir::ExpectOptions::rewrite, which asks
/// what roundings do then.
ir::Graph as_fused(const ir::Graph& graph);

/// A step of compilation that is no pass, since it ends in something else than a graph, or needs what does.
struct Stage {
  std::string name;
  std::string doc;
};

/// What follows the passes, in order, for every machine: rematerialize, fuse, kernels, memory-plan.
const std::vector<Stage>& lowering_stages();

}  // namespace lathe
