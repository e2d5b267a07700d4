#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Whether a graph exchanges nothing with other processes.
bool is_of_one_process(const ir::Graph& graph);
/// Throws UserError [one_process] at the first collective of a graph: it is one of several processes', and nobody
/// carries out what they exchange.
void require_one_process(const ir::Graph& graph);

}  // namespace lathe
