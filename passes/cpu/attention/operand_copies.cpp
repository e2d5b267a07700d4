#include "passes/cpu/attention/operand_copies.h"

#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Value;

void copy_to(OperandLoader& operand, const ScratchMatrix& matrix, Value outer, Value first, Value count, int lanes) {
  kernel::Builder& b = operand.context().builder;
  b.for_loop(0, count, 1, [&](Value position) {
    vector_loop(b, b.index(0), operand.context().dim(operand.operand().size), lanes, [&](Value d, Value mask) {
      const Value elements = operand.load(outer, first + position, d, LaneAxis::k, lanes, mask);
      b.store(matrix.buffer, position * matrix.stride + d, b.cast(elements, matrix.buffer.dtype), mask);
    });
  });
}

void pairs_to(OperandLoader& operand, const ScratchMatrix& matrix, Value outer, Value first, Value count, int lanes) {
  kernel::Builder& b = operand.context().builder;
  const LoadOperand load = load_from(operand.transposed_callback(), first);
  const cpu::MicroPanelSource from{.batch = outer,
                                   .row = b.index(0),
                                   .rows = operand.context().dim(operand.operand().size),
                                   .k0 = b.index(0),
                                   .depth = b.ceil_div(count, 2),
                                   .k = count,
                                   .width = static_cast<int>(*b.constant_value(matrix.stride)),
                                   .axis = operand.transposed_axis(),
                                   .load = &load};
  emit_pack_micro_panel(b, {.compute = operand.compute(), .lanes = lanes, .operands = GemmTile::Operands::pairs},
                        from, {matrix.buffer, b.index(0)});
}

}  // namespace lathe::cpu
