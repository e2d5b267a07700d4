#pragma once

#include "ir/tensor/node_map.h"

namespace lathe::ir {

/// The partners of two graphs' values: the value of the other graph that has the same role, or an invalid id.
struct ValueMatch {
  NodeMap<ValueId> in_b;  ///< by value of a
  NodeMap<ValueId> in_a;  ///< by value of b
};

/// Matches the values of two graphs by structure and names, not by position: arguments by name; then values that
/// compute the same from the inputs, or lead to the same results; then, in graph order, values with the same
/// neighbourhood, names and modules; then values whose operands or users are matched.
ValueMatch match_values(const Graph& a, const Graph& b);

}  // namespace lathe::ir
