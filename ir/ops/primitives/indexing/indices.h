#pragma once

#include <fmt/core.h>

#include "ir/ops/rules/operand_rules.h"
#include "ir/support/error.h"
#include "ir/support/tensors/host_tensor.h"

/// Helpers for the records of ops with index operands.
namespace lathe::ir::ops {

/// Requires an integer operand [index_dtype].
inline void require_indices(const InferContext& ctx, int operand) {
  ctx.require(is_integer(ctx.operand(operand).dtype), "index_dtype",
              fmt::format("indices must be i64 or i32, not {}", rules::describe(ctx, operand)),
              "cast them, as in indices.to(i64)");
}

/// Returns the index at position k, checked against the size of its dim [index_range].
inline std::int64_t checked_index(const Node& node, const HostTensor& indices, std::int64_t k, std::int64_t size) {
  const std::int64_t index = indices.get_int(k);
  if (index < 0 || index >= size)
    throw UserError(node.loc, node.op->name.value,
                    fmt::format("index {} at {} is out of range for a dim of size {}", index,
                                shape_to_string(position_of(indices.shape(), k)), size),
                    "index_range", size > 0 ? fmt::format("use 0 to {}", size - 1) : std::string("the dim is empty"));
  return index;
}

}  // namespace lathe::ir::ops
