#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// A pass: one pure function with a name. It is given its graph to keep, so that one that has nothing to do copies
/// nothing.
struct Pass {
  std::string name;
  std::string doc;
  std::function<Graph(Graph)> run;
};
using Pipeline = std::vector<Pass>;

/// The passes one after the other, without the checks of run_pipeline() (passes/pipeline/pipeline.h).
inline Graph apply_passes(const Pipeline& pipeline, Graph graph) {
  for (const Pass& pass : pipeline) graph = pass.run(std::move(graph));
  return graph;
}

}  // namespace lathe::ir
