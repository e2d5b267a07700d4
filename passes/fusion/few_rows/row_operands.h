#pragma once

#include <cstdint>
#include <functional>

#include "ir/tensor/node_map.h"

namespace lathe {

/// Sizes up to which kernels of matmuls with few rows compute these rows themselves. No rows: never.
struct RowOperandLimits {
  std::int64_t rows = 0;     ///< of the operand
  std::int64_t bytes = 0;    ///< of all rows
  std::int64_t columns = 0;  ///< of the result, for rows of unknown length
};

/// Marks the values that matmuls with few rows compute in their left operand, and appended rows of caches, instead of
/// reading them from memory. Each block of the matmul then computes a whole row, reductions along it included,
/// which is cheaper than a launch for the row:
///
///     %n = rms_norm(%x), %q = linear(%n, %Wq), %k = linear(%n, %Wk)    the kernels of %q and %k read %x
///     %p = softmax(%scores), %y = matmul(%p, %V)                       the kernel of %y reads %scores
///     %a = mul(silu(%gate), %up), %y = linear(%a, %W)                  the kernel of %y reads silu(%gate) and %up
///
/// The values are point-wise, joined (concat, pad) or reductions along the dim that the matmul sums over, and nothing
/// else reads them. Values that the kernel of another matmul can compute as its epilogue stay there: silu(%gate). A
/// value with another reader is not marked, nor is one that would be expensive to compute in each block. `wanted`
/// says which matmuls are considered.
ir::NodeMap<bool> find_row_operands(const ir::Graph& graph, const RowOperandLimits& limits,
                                    const std::function<bool(ir::ValueId product)>& wanted);

/// Returns which operand of a float contraction has at most `most` rows, at least one, if its kernel reads the other
/// operand once: -1 if none. The number of rows must be known.
int operand_of_few_rows(const ir::Graph& graph, const ir::Node& contraction, std::int64_t most);

}  // namespace lathe
