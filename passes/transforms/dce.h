#pragma once

#include "ir/tensor/node_map.h"

namespace lathe::ir {

/// Returns which nodes dce keeps, by position.
NodeMap<bool> needed_nodes(const Graph& graph);

/// Removes the nodes that no output and no update needs. Arguments are kept, because they are the signature.
Graph dce(Graph graph);

}  // namespace lathe::ir
