#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Which nodes dce keeps, by position.
std::vector<bool> needed_nodes(const Graph& graph);

/// Drops the nodes that no output and no update needs. Arguments stay: they are the signature.
Graph dce(Graph graph);

}  // namespace lathe::ir
