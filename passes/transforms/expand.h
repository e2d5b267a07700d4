#pragma once

#include <span>

#include "ir/tensor/graph.h"

namespace lathe::ir {

struct Op;

/// Replaces each composite, except those in `keep`, by its expansion, until only primitives (and kept ops) are left:
///   %1 = silu %x   ->   %1 = neg %x; %2 = exp %1; ...
/// Differentiate before this pass, which removes stop_gradient.
Graph expand(Graph graph, std::span<const Op* const> keep = {});

}  // namespace lathe::ir
