#include "passes/lowering/operands/cache_append_operands.h"

#include "ir/ops/rules/operand_rules.h"
#include "passes/lowering/operands/along_dim.h"

namespace lathe {

namespace {

/// Returns the dims of the rows that positions vary along.
std::vector<int> position_dims(int positions, int rank, int dim) {
  if (positions == rank) return dims_between(0, rank);
  return positions == 1 ? std::vector<int>{dim} : std::vector<int>{0, dim};
}

}  // namespace

CacheAppendOperands::CacheAppendOperands(const LoweringContext& context, ir::ValueId value)
    : lowering(context),
      id(value),
      node(context.graph[value]),
      dim(ir::rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank())),
      pre(dims_between(0, dim)),
      post(dims_between(dim + 1, node.type.rank())),
      rows(operand_program(context.graph, context.plan, node.operands[2], dims_between(0, node.type.rank()),
                           context.graph[node.operands[2]].type.shape)),
      positions(operand_program(context.graph, context.plan, node.operands[1],
                                position_dims(context.graph[node.operands[1]].type.rank(), node.type.rank(), dim),
                                context.graph[node.operands[2]].type.shape)),
      each(context.graph[node.operands[1]].type.rank() == node.type.rank() && !post.empty()),
      size(node.type.shape[dim].unnamed()),
      count(context.graph[node.operands[2]].type.shape[dim].unnamed()) {}

bool CacheAppendOperands::copies() const {
  const Placement& old = lowering.plan.placement[node.operands[0]];
  return lowering.buffer_of(old.base) != lowering.buffer_of(id);
}

OperandProgram CacheAppendOperands::old() const {
  return operand_program(lowering.graph, lowering.plan, node.operands[0], dims_between(0, node.type.rank()),
                         node.type.shape);
}

}  // namespace lathe
