#pragma once

#include "ir/tensor/op/op.h"

namespace lathe::ir {

/// Returns the class in which mixed precision computes a node, never `expansion`. If the record says `expansion`,
/// expands the node to determine it.
MixedPrecision precision_of(const Graph& graph, const Node& node);

}  // namespace lathe::ir
