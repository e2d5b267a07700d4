#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Drops the nodes that no output and no update needs. Arguments stay: they are the signature.
Graph dce(Graph graph);

}  // namespace lathe::ir
