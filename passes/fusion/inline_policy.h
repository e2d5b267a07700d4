#pragma once

#include <vector>

#include "ir/tensor/node_map.h"

namespace lathe {

/// Marks the nodes that their readers compute themselves instead of loading them: constants and iotas, masks computed
/// from them, and cheap elementwise nodes, if for all readers a load costs more than recomputing them (the operands
/// of contractions and of reductions over outer dims). Operands of outputs, updates and reshapes are never inlined.
/// `row_sums` marks scatter_adds that are inlined, whose updates are then in memory: see row_sums.h. `copied` marks
/// operands that are not inlined although they are cheap: see copied_operands.h. Empty: none.
ir::NodeMap<bool> choose_inlined(const ir::Graph& graph, const ir::NodeMap<bool>& row_sums = {},
                                 const ir::NodeMap<bool>& copied = {});

/// Returns a rough count of arithmetic operations per element: 1 for an add, about 10 for an exp.
int arithmetic_cost(const ir::Node& node);

}  // namespace lathe
