#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Returns whether a graph has no collectives.
bool is_of_one_process(const ir::Graph& graph);
/// Throws UserError [one_process] at the first collective of a graph, because it cannot run on a single process.
void require_one_process(const ir::Graph& graph);

}  // namespace lathe
