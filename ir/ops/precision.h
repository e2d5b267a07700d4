#pragma once

#include "ir/tensor/op/op.h"

namespace lathe::ir {

/// Where mixed precision computes a node: the class of its record, never `expansion`. A node whose record leaves it
/// to the expansion is expanded for it.
MixedPrecision precision_of(const Graph& graph, const Node& node);

}  // namespace lathe::ir
