#include "passes/lowering/row_update_operands.h"

#include <numeric>

#include "ir/ops/rules.h"

namespace lathe {

namespace {

std::vector<int> dims_from(int first, int last) {
  std::vector<int> dims(static_cast<std::size_t>(last - first));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

}  // namespace

RowUpdateOperands::RowUpdateOperands(const LoweringContext& context, ir::ValueId value)
    : lowering(context),
      id(value),
      node(context.graph[value]),
      dim(ir::rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank())),
      pre(dims_from(0, dim)),
      post(dims_from(dim + 1, node.type.rank())),
      rows(operand_program(context.graph, context.plan, node.operands[2], dims_from(0, node.type.rank()),
                           context.graph[node.operands[2]].type.shape)),
      positions(operand_program(
          context.graph, context.plan, node.operands[1],
          context.graph[node.operands[1]].type.rank() == 1 ? std::vector<int>{dim} : std::vector<int>{0, dim},
          context.graph[node.operands[2]].type.shape)),
      size(node.type.shape[dim].unnamed()),
      count(context.graph[node.operands[2]].type.shape[dim].unnamed()) {}

bool RowUpdateOperands::copies() const {
  const Placement& old = lowering.plan.placement[static_cast<std::size_t>(node.operands[0].index)];
  return lowering.buffer_of(old.base) != lowering.buffer_of(id);
}

OperandProgram RowUpdateOperands::old() const {
  return operand_program(lowering.graph, lowering.plan, node.operands[0], dims_from(0, node.type.rank()),
                         node.type.shape);
}

}  // namespace lathe
