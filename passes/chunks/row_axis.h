#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// Where the rows of some product lie in a value: row i at i * unit up to (i + 1) * unit of a dim. The unit is more
/// than 1 where inner dims are merged into them: rows of [B, T, V] along B in a view [B*T, V] have the unit T.
struct RowAxis {
  int dim = 0;
  Dim unit = 1;
  bool operator==(const RowAxis&) const = default;
};

/// How rows run through a node: where they lie in each operand (nothing: it is the same for all rows) and in the
/// result (nothing: they are folded, or looked up).
struct RowsThrough {
  std::vector<std::optional<RowAxis>> operands;
  std::optional<RowAxis> result;
  bool operator==(const RowsThrough&) const = default;
};

/// Follows rows through a primitive from where they lie in operand number `from`, or in its result (-1). Nothing
/// where rows are no range of a dim any more, or the node has its own way with them. With `resized` along a dim that
/// is sliced, padded or joined as well, whose rows are then others.
std::optional<RowsThrough> rows_through(const ir::Graph& graph, const ir::Node& node, int from, const RowAxis& axis,
                                        bool resized = false);

}  // namespace lathe
