#pragma once

#include <set>
#include <string>

#include "passes/lowering/lower.h"

namespace lathe {

/// Describes the kind of region that computes a sum, because another kind may produce other bits. Empty for other
/// values.
std::string how_summed(const ir::Graph& graph, const FusionPlan& regions, ir::ValueId id);

/// Returns how each sum of a prepared graph, and of the bodies of its loops, is computed, with its line.
std::set<std::string> sum_kinds(const ir::Graph& graph, const Machine& machine, const LowerOptions& options);

}  // namespace lathe
