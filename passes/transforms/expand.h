#pragma once

#include <span>

#include "ir/tensor/graph.h"

namespace lathe::ir {

struct Op;

/// Replaces each composite, but for those in `keep`, by what it means, until only primitives (and kept ops) are left:
///   %1 = silu %x   ->   %1 = neg %x; %2 = exp %1; ...
/// Differentiate before this pass: stop_gradient is gone after it.
Graph expand(Graph graph, std::span<const Op* const> keep = {});

}  // namespace lathe::ir
