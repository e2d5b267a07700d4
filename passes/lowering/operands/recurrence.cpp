#include "passes/lowering/operands/recurrence.h"

namespace lathe {

Recurrence::Recurrence(const LoweringContext& lowering, ir::ValueId id)
    : factors(lowering, id),
      terms(operand_program(lowering.graph, lowering.plan, factors.node.operands[1],
                            dims_between(0, factors.node.type.rank()),
                            lowering.graph[factors.node.operands[1]].type.shape)),
      reverse(factors.node.attrs.get<bool>("reverse")) {}

kernel::Value applied(kernel::Builder& b, const LinearStep& step, kernel::Value state) {
  const kernel::Value zero = b.constant(f64, 0, state.type.lanes);
  return b.select(equal(state, zero), step.term, b.fma(step.factor, state, step.term));
}

LinearStep composed(kernel::Builder& b, const LinearStep& first, const LinearStep& second) {
  return {first.factor * second.factor, applied(b, second, first.term)};
}

}  // namespace lathe
