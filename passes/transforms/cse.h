#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Makes equal computations one node. More than the builder's hash-consing: operands of commutative ops in either
/// order, and types that differ in the names of known dims only (the first name stays).
///   %1 = add %a, %b; %2 = add %b, %a; %3 = mul %1, %2   ->   %1 = add %a, %b; %2 = mul %1, %1
Graph cse(Graph graph);

}  // namespace lathe::ir
