#include "passes/lowering/operands/segments.h"

#include <numeric>

#include "ir/ops/primitives/primitives.h"

namespace lathe {

namespace {

bool is_grouped_matmul(const ir::Node& node) { return node.op == &ir::ops::grouped_matmul; }

ir::ValueId offsets_of(const ir::Node& node) { return node.operands[is_grouped_matmul(node) ? 1 : 2]; }

/// Rows [s, k] times weight [n, k] for a grouped_matmul; [s, n] times [s, k] for a segment_outer.
ir::Node product_of(const LoweringContext& lowering, const ir::Node& node, int number) {
  const bool keeps = is_grouped_matmul(node);
  const ir::ValueId other = keeps ? node.operands[static_cast<std::size_t>(number) + 2] : node.operands[1];
  const ir::TensorType &a = lowering.graph[node.operands[0]].type, &b = lowering.graph[other].type;
  const Shape shape = keeps ? Shape{a.shape[0], b.shape[0]} : Shape{a.shape[1], b.shape[1]};
  ir::Node product;
  product.op = ir::ops::contract;
  product.operands = {node.operands[0], other};
  product.attrs = {{"spec", std::string(keeps ? "mk,nk->mn" : "km,kn->mn")}};
  product.type = ir::TensorType::contiguous(node.type.dtype, shape);
  product.loc = node.loc;
  return product;
}

kernel::Value offset_as_given(ElementwiseEmitter& emitter, int result, kernel::Value at) {
  ElementwiseEmitter::Scope scope(emitter, {{{0}, at, 1}});
  return emitter.context().builder.cast(emitter.emit(result, scope), i64);
}

kernel::Value clamped(kernel::Builder& b, kernel::Value offset, kernel::Value rows) {
  return kernel::min(kernel::max(offset, b.index(0)), rows);
}

/// Declares the buffers. Returns the code of the check that offsets ascend.
std::int64_t declare_product(KernelContext& context, const LoweringContext& lowering, const Segment& segment, int out,
                             DType dtype) {
  const ProductOperands& o = segment.operands();
  declare_buffers(context, {&segment.offsets().program, &o.left.operand.program, &o.right.operand.program}, lowering);
  context.declare(out, dtype, false, true);
  if (segment.keeps_rows()) context.writes_part_of(out);
  return context.check_code("offsets do not ascend in [0, " + segment.rows().to_string() + "]");
}

}  // namespace

Segment::Segment(const LoweringContext& lowering, ir::ValueId id, int number)
    : keeps_rows_(is_grouped_matmul(lowering.graph[id])),
      number_(number),
      count_(lowering.graph[offsets_of(lowering.graph[id])].type.shape[0] - Dim(1)),
      product_(product_of(lowering, lowering.graph[id], number)),
      operands_(lowering, product_),
      offsets_(segment_offsets(lowering, lowering.graph[id])) {}

std::vector<int> segment_numbers(const ir::Node& node) {
  if (!is_grouped_matmul(node)) return {static_cast<int>(node.attrs.get<std::int64_t>("segment"))};
  std::vector<int> numbers(node.operands.size() - 2);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

OperandProgram segment_offsets(const LoweringContext& lowering, const ir::Node& node) {
  const ir::ValueId offsets = offsets_of(node);
  return operand_program(lowering.graph, lowering.plan, offsets, {0}, lowering.graph[offsets].type.shape);
}

kernel::Value segment_offset(ElementwiseEmitter& emitter, int result, kernel::Value at, kernel::Value rows) {
  return clamped(emitter.context().builder, offset_as_given(emitter, result, at), rows);
}

SegmentProduct::SegmentProduct(const LoweringContext& lowering, ir::ValueId id, const Segment& of)
    : segment(of),
      node(lowering.graph[id]),
      out(lowering.buffer_of(id)),
      code(declare_product(context, lowering, of, out, node.type.dtype)),
      offsets(context, of.offsets().program, lowering.buffer_of),
      left(context, of.operands().left.operand.program, lowering.buffer_of),
      right(context, of.operands().right.operand.program, lowering.buffer_of),
      left_top(left, {}),
      right_top(right, {}),
      number(context.argument(of.number())),
      rows(context.dim(of.rows())) {}

SegmentProduct::Rows SegmentProduct::find_rows() {
  kernel::Builder& b = context.builder;
  const int result = segment.offsets().result;
  const kernel::Value first = offset_as_given(offsets, result, number),
                      last = offset_as_given(offsets, result, number + 1);
  b.check(b.index(0) <= first && first <= last && last <= rows, code);
  const kernel::Value lo = clamped(b, first, rows);
  return {lo, kernel::min(kernel::max(last, lo), rows)};
}

void SegmentProduct::store(kernel::Value at, kernel::Value sums, kernel::Value mask) {
  context.builder.store(context.buffer(out), at, context.builder.cast(sums, node.type.dtype), mask);
}

KernelContext::Built SegmentProduct::finish() {
  auto built = context.finish();
  const ProductOperands& o = segment.operands();
  const Dim all = Dim(2) * o.m * o.n * o.k;
  built.launch.flops = all.divided_by(segment.count()).value_or(all);
  return built;
}

}  // namespace lathe
