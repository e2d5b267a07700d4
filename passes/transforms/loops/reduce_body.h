#pragma once

#include <optional>
#include <vector>

#include "ir/ops/loop_parts.h"

namespace lathe::ir {

/// A loop with the same used results as another one, and less to compute in each iteration.
struct ReducedLoop {
  LoopParts parts;
  std::vector<int> result;                  ///< by result of the other loop: its result here; -1 if it is not used
  std::vector<std::optional<Value>> fixed;  ///< by result of the other loop: its value if the loop does not change it
};

/// Drops what the used results do not need, moves values that are the same in all iterations in front of the loop,
/// into `builder`, and numbers into the body. `parts` belongs to `builder`.
ReducedLoop reduce_body(GraphBuilder& builder, LoopParts parts, const std::vector<bool>& used);

}  // namespace lathe::ir
