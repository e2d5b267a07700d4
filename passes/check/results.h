#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The results of a graph by the names that interpret gives them: outputs, and states with the values that they take.
std::vector<Output> named_results(const Graph& graph);

/// "v12": what only_values calls the value at position 12.
std::string value_name(ValueId id);

/// The graph with these values as its only outputs, named by value_name, and nothing that they do not need. Arguments
/// stay, and updates where `updates` says so.
Graph only_values(Graph graph, std::span<const ValueId> values, bool updates = false);

}  // namespace lathe::ir
