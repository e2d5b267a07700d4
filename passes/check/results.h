#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the results of a graph by the names that interpret gives them: outputs, and states with their new values.
std::vector<Output> named_results(const Graph& graph);

/// Returns the name that only_values gives a value: "v12" at position 12.
std::string value_name(ValueId id);

/// Returns the graph with these values as its only outputs, named by value_name, without nodes that they do not need.
/// Arguments are kept, and so are updates if `updates` is true.
Graph only_values(Graph graph, std::span<const ValueId> values, bool updates = false);

}  // namespace lathe::ir
