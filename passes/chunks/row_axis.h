#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// Where the rows of a product are in a value: row i is at i * unit up to (i + 1) * unit of a dim. The unit is more
/// than 1 if inner dims are merged into them: rows of [B, T, V] along B in a view [B*T, V] have the unit T.
struct RowAxis {
  int dim = 0;
  Dim unit = 1;
  bool operator==(const RowAxis&) const = default;
};

/// How rows run through a node: where they are in each operand (nothing: it is the same for all rows) and in the
/// result (nothing: they are reduced, or looked up).
struct RowsThrough {
  std::vector<std::optional<RowAxis>> operands;
  std::optional<RowAxis> result;
  bool operator==(const RowsThrough&) const = default;
};

/// Follows rows through a primitive, from their position in operand number `from`, or in its result (-1). Returns
/// nothing if rows are no longer a range of a dim, or if the node treats them in another way. With `resized`, it also
/// follows them along a dim that is sliced, padded or concatenated, which has other rows afterwards.
std::optional<RowsThrough> rows_through(const ir::Graph& graph, const ir::Node& node, int from, const RowAxis& axis,
                                        bool resized = false);

}  // namespace lathe
