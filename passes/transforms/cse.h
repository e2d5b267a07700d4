#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Merges equal computations into one node. In addition to the builder's hash-consing, operands of commutative ops
/// may be in either order, and types may differ in the names of known dims (the first name is kept).
///   %1 = add %a, %b; %2 = add %b, %a; %3 = mul %1, %2   ->   %1 = add %a, %b; %2 = mul %1, %1
Graph cse(Graph graph);

}  // namespace lathe::ir
