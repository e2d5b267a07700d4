#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// How dims run through a node. Dims with the same label have the same size and share an index, element by element;
/// -1 labels a dim of size 1 that is broadcast along another one. A label that the result lacks is folded or looked
/// up.
///
///   %3 = sub %1, %2 : [n, v]     of [n, v] and [n, 1]:  {{0, 1}, {0, -1}} -> {0, 1}
///   %4 = max %3 {dims=[1]}                              {{0, 1}}          -> {0}
struct DimLabels {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  int cut = -1;  ///< label of the sliced, padded or concatenated dim: its index and size change
};

/// Returns the labels of a primitive; nothing for views that merge or split dims, diagonals, scatter_add and complex
/// numbers.
std::optional<DimLabels> dim_labels(const ir::Graph& graph, const ir::Node& node);

}  // namespace lathe
