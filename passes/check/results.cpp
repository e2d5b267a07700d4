#include "passes/check/results.h"

#include <fmt/core.h>

#include "passes/transforms/dce.h"

namespace lathe::ir {

std::vector<Output> named_results(const Graph& graph) {
  std::vector<Output> results = graph.outputs;
  for (const Update& update : graph.updates) results.push_back({graph[update.state].name, update.value});
  return results;
}

std::string value_name(ValueId id) { return fmt::format("v{}", id.index); }

Graph only_values(Graph graph, std::span<const ValueId> values, bool updates) {
  graph.outputs.clear();
  for (const ValueId id : values) graph.outputs.push_back({value_name(id), id});
  if (!updates) graph.updates.clear();
  return dce(std::move(graph));
}

}  // namespace lathe::ir
