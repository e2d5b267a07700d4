#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Throws UserError [one_process] at the first node of a graph that is one of several processes': no machine has
/// kernels for what they exchange, nor for the parts of a random draw.
void require_one_process(const ir::Graph& graph);

}  // namespace lathe
