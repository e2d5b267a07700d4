#pragma once

#include <vector>

#include "ir/tensor/node_map.h"

namespace lathe {

/// By node: the scatter_adds whose readers add up the updates themselves, row by row, because everything that depends
/// on the result is point-wise and has its shape, as in an AdamW update of an embedding table. The result, most of
/// whose rows are zero, is then never stored. Its size along the rows must be known, vectors must fit along the dims
/// after them, and the updates must have a single stride.
ir::NodeMap<bool> find_row_sums(const ir::Graph& graph);

}  // namespace lathe
