#include "passes/cpu/gemm/fixed_operand.h"

#include <algorithm>

namespace lathe::cpu {

using Kind = ElementwiseInstruction::Kind;

bool is_fixed_operand(const CpuContext& context, const ProductOperands& operands, const ProductOperand& operand,
                      const Dim& rows) {
  if (!operands.batch.is(1) || !rows.value() || !operands.k.value()) return false;
  std::int64_t loaded = 0;
  for (const ElementwiseInstruction& i : operand.operand.program.code) {
    if (i.kind == Kind::constant || i.kind == Kind::scalar || i.kind == Kind::index) continue;
    if (i.kind != Kind::load || !i.args.empty() || !context.is_fixed(i.buffer)) return false;
    const ir::TensorType& type = context.graph[i.buffer].type;
    loaded += type.shape.numel().value().value_or(0) * static_cast<std::int64_t>(size_in_bytes(type.dtype));
  }
  const bool as_bf16 = operands.dtype == bf16 && (context.cpu.dot_pairs || context.cpu.tiles);
  const auto packed = static_cast<std::int64_t>(size_in_bytes(as_bf16 ? bf16 : operands.compute));
  return *rows.value() * *operands.k.value() * packed <= loaded;
}

bool is_kept_operand(const CpuContext& context, const ProductOperands& operands, const ProductOperand& operand,
                     const Dim& rows) {
  return is_fixed_operand(context, operands, operand, rows) &&
         std::ranges::all_of(operand.operand.program.code, [&](const ElementwiseInstruction& i) {
           return i.kind != Kind::load || context.keeps(i.buffer);
         });
}

}  // namespace lathe::cpu
