#pragma once

#include "passes/cpu/cpu_context.h"
#include "passes/lowering/operands/product_operands.h"

namespace lathe::cpu {

/// Returns whether all that an operand with `rows` rows loads are parameters that the graph does not update, and a
/// packed copy is not larger than they are. A copy then has the same contents in all runs until a parameter changes.
bool is_fixed_operand(const CpuContext& context, const ProductOperands& operands, const ProductOperand& operand,
                      const Dim& rows);
/// Returns whether, in addition, a packed copy is kept between runs: LowerOptions::packed_bytes.
bool is_kept_operand(const CpuContext& context, const ProductOperands& operands, const ProductOperand& operand,
                     const Dim& rows);

}  // namespace lathe::cpu
