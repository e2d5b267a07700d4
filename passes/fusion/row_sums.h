#pragma once

#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// By node: the scatter_adds whose readers add up the updates for themselves, row by row, since everything that is
/// made of the result is point-wise and of its shape, as the update of an embedding table by AdamW. So the result,
/// most of whose rows are zero, is never made. Its size along the rows is known, and vectors can run along the dims
/// behind them; the updates are found at one stride.
std::vector<bool> find_row_sums(const ir::Graph& graph);

}  // namespace lathe
