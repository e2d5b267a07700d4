#pragma once

#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// Marks the nodes that their readers compute for themselves instead of loading: constants and iotas, masks made of
/// them, and cheap element-wise nodes read only where loading them would cost more than computing them again (the
/// operands of contractions and of reductions over outer dims). What an output, an update or a reshape reads is never
/// inlined. `row_sums` marks scatter_adds that are inlined, whose updates then lie in memory: see row_sums.h;
/// `copied` operands that are not, though they are cheap: see copied_operands.h. Empty: none.
std::vector<bool> choose_inlined(const ir::Graph& graph, const std::vector<bool>& row_sums = {},
                                 const std::vector<bool>& copied = {});

/// A rough count of arithmetic for one element: 1 for an add, about 10 for an exp.
int arithmetic_cost(const ir::Node& node);

}  // namespace lathe
