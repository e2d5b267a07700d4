#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// A pass: one pure function with a name.
struct Pass {
  std::string name;
  std::string doc;
  std::function<Graph(const Graph&)> run;
};
using Pipeline = std::vector<Pass>;

/// The passes one after the other, without the checks of run_pipeline() (passes/pipeline.h).
inline Graph apply_passes(const Pipeline& pipeline, const Graph& graph) {
  if (pipeline.empty()) return graph;
  Graph result = pipeline.front().run(graph);
  for (std::size_t i = 1; i < pipeline.size(); ++i) result = pipeline[i].run(result);
  return result;
}

}  // namespace lathe::ir
