#include "passes/lowering/operands/matrices.h"

#include "passes/lowering/operands/along_dim.h"

namespace lathe {

Matrices::Matrices(const LoweringContext& lowering, ir::ValueId id)
    : operand(operand_program(lowering.graph, lowering.plan, id, dims_between(0, lowering.graph[id].type.rank()),
                              lowering.graph[id].type.shape)),
      batch(dims_between(0, lowering.graph[id].type.rank() - 2)),
      row(lowering.graph[id].type.rank() - 2),
      compute(compute_type(lowering.graph[id].type.dtype)),
      count(operand.program.points(batch)),
      rows(operand.program.domain[row].unnamed()),
      columns(operand.program.domain[row + 1].unnamed()) {}

kernel::Value Matrices::along_columns(ElementwiseEmitter& elements, kernel::Value matrix, kernel::Value at_row,
                                      kernel::Value column, int lanes, kernel::Value mask) const {
  return load(elements, {{batch, matrix, 1}, {{row}, at_row, 1}, {{row + 1}, column, lanes}}, lanes, mask);
}

kernel::Value Matrices::along_rows(ElementwiseEmitter& elements, kernel::Value matrix, kernel::Value at_row,
                                   kernel::Value column, int lanes, kernel::Value mask) const {
  return load(elements, {{batch, matrix, 1}, {{row}, at_row, lanes}, {{row + 1}, column, 1}}, lanes, mask);
}

kernel::Value Matrices::load(ElementwiseEmitter& elements, std::vector<IndexGroup> groups, int lanes,
                             kernel::Value mask) const {
  ElementwiseEmitter::Scope scope(elements, std::move(groups), mask);
  kernel::Builder& b = elements.context().builder;
  return b.cast(b.broadcast(elements.emit(operand.result, scope), lanes), compute);
}

kernel::Value pivot_root(kernel::Builder& b, kernel::Value pivot) {
  const kernel::Value negative = b.constant(pivot.type.scalar, -1);
  return b.apply(ScalarOp::sqrt, {b.select(pivot > 0, pivot, negative)});
}

FoundElements::FoundElements(const LoweringContext& lowering, ir::ValueId id)
    : dtype_(lowering.graph[id].type.dtype),
      compute_(compute_type(dtype_)),
      out_(lowering.buffer_of(id)),
      kept_(dtype_ == compute_
                ? out_
                : lowering.workspace(compute_, lowering.graph[id].type.shape.numel().unnamed(), "found elements")) {}

void FoundElements::declare(KernelContext& context) const {
  context.declare(kept_, compute_, true, true);
  if (out_ != kept_) context.declare(out_, dtype_, false, true);
}

kernel::Value FoundElements::load(KernelContext& context, kernel::Value at, int lanes, kernel::Value mask) const {
  return context.builder.load(context.buffer(kept_), at, lanes, mask);
}

void FoundElements::keep(KernelContext& context, kernel::Value at, kernel::Value value, kernel::Value mask) const {
  context.builder.store(context.buffer(kept_), at, value, mask);
}

void FoundElements::store(KernelContext& context, kernel::Value at, kernel::Value value, kernel::Value mask) const {
  keep(context, at, value, mask);
  if (out_ != kept_) context.builder.store(context.buffer(out_), at, context.builder.cast(value, dtype_), mask);
}

TriangularSolve::TriangularSolve(const ir::Node& node)
    : transpose(node.attrs.get<bool>("transpose")),
      unit(node.attrs.get<bool>("unit_diagonal")),
      upward(node.attrs.get<bool>("upper") != transpose) {}

}  // namespace lathe
