#pragma once

#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op.h"

namespace lathe::test {

/// Returns the values of a graph without a source line: "%5 add", or the name of an argument.
inline std::vector<std::string> without_lines(const ir::Graph& graph) {
  std::vector<std::string> found;
  for (const ir::ValueId id : ir::all_values(graph)) {
    const ir::Node& node = graph[id];
    if (!node.loc.known())
      found.push_back(node.name.empty() ? "%" + std::to_string(id.index) + " " + std::string(node.op->name)
                                        : node.name);
  }
  return found;
}

}  // namespace lathe::test
