#include "passes/gpu/attention/attention_plan.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

KernelContext::Built lower_operand_maxima(const AttentionPlan& plan) {
  KernelContext context("attention_maxima", KernelRole::attention_bounds);
  kernel::Builder& b = context.builder;
  const DType compute = plan.tile.compute;
  const int lanes = plan.tile.own(), span = plan.tile.span();
  std::vector<const ElementwiseProgram*> programs;
  for (const auto& m : plan.maxima) programs.push_back(&m.operand->code.program);
  declare_buffers(context, programs, plan.lowering);
  for (const auto& m : plan.maxima) context.declare(m.buffer, compute, false, true);
  for (const auto& m : plan.maxima) {
    OperandLoader loader(context, plan.lowering, *m.operand, compute);
    loader.hoist();
    const Dim& size = m.operand->by_column ? plan.attention.column_count : plan.attention.rows;
    const Value positions = context.dim(size), blocks = context.dim(plan.blocks_of(size));
    const Value depth = context.dim(m.operand->size), used = b.ceil_div(positions, span);
    // Vectors are numbered position by position.
    const Value vectors_of_one = b.ceil_div(depth, lanes);
    const auto block = [&](Value i) {
      const Value outer = i / used, number = i % used, first = number * span;
      SharedTree tree(b, {compute}, block_threads);
      const auto thread = [&](Value slot) {
        const kernel::Var most = b.var(b.constant(compute, 0, lanes));
        const Value end = min(positions - first, span) * vectors_of_one;
        b.for_loop(slot, end, block_threads, [&](Value v) {
          const Value position = first + v / vectors_of_one, d = v % vectors_of_one * lanes;
          unmasked_or_masked(b, d, depth, lanes, m.operand->size, [&](Value mask) {
            const Value elements = loader.load(outer, position, d, LaneAxis::k, lanes, mask);
            const Value here = b.apply(ScalarOp::abs, {elements});
            const Value counted = mask ? b.select(mask, here, b.constant(compute, 0, lanes)) : here;
            b.set(most, max(b.get(most), counted));
          });
        });
        const Value own = b.reduce(ScalarOp::max, b.get(most));
        const Value all = tree.reduce({0}, {ScalarOp::max}, {own}, slot, slot, block_threads)[0];
        b.if_(equal(slot, 0), [&] { b.store(context.buffer(m.buffer), outer * blocks + number, all); });
      };
      b.for_loop(0, block_threads, 1, thread, LoopKind::thread_x);
    };
    b.for_loop(0, context.dim(plan.outer()) * used, 1, block, LoopKind::block_x);
  }
  return context.finish();
}

}  // namespace lathe::gpu
