#include "passes/gpu/attention/attention_tile_skip.h"

#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/attention/tile_skip_check.h"

namespace lathe::gpu {

using kernel::Value;

namespace {

Value largest_score_of(KernelContext& context, const AttentionPlan& plan, Value outer, Value row, int count,
                       Value lane) {
  kernel::Builder& b = context.builder;
  const AttentionProgram& attention = plan.attention;
  const int span = plan.tile.span();
  return largest_score_bound(context, attention.parts, attention.bounds, [&](const AttentionOperand& operand) {
    const Dim& size = operand.by_column ? attention.column_count : attention.rows;
    const kernel::Buffer from = context.buffer(plan.maximum(operand).buffer);
    const Value first = outer * context.dim(plan.blocks_of(size)), blocks = b.ceil_div(context.dim(size), span);
    if (!operand.by_column && count == span) return b.load(from, first + row / span);
    const kernel::Var most = b.var(b.constant(plan.tile.compute, 0));
    const Value lo = operand.by_column ? b.index(0) : row / span;
    const Value hi = operand.by_column ? blocks : min(blocks, lo + count / span);
    const auto take = [&](Value i) { b.set(most, max(b.get(most), b.load(from, first + i))); };
    if (!lane) {
      b.for_loop(lo, hi, 1, take);
      return b.get(most);
    }
    b.for_loop(lo + lane, hi, kernel::warp_threads, take);
    return reduce_in_warp(b, ScalarOp::max, b.get(most), lane, kernel::warp_threads);
  });
}

}  // namespace

SkippableColumns skippable_columns(KernelContext& context, const AttentionPlan& plan, Value outer, Value row,
                                   int count, int tile_columns, Value lane) {
  kernel::Builder& b = context.builder;
  const ColumnBounds& bounds = plan.attention.bounds;
  const Value columns = context.dim(plan.attention.column_count),
              largest_score = largest_score_of(context, plan, outer, row, count, lane);
  const Value bounded = largest_score < score_limit;
  const auto bound = [&](const std::optional<Dim>& offset, Value otherwise, bool above) {
    if (!offset) return otherwise;
    const Value first = row + context.dim(*offset) + (above ? count : 0);
    const Value inside = max(min(first, columns), 0);
    return b.select(bounded, above ? inside : inside / tile_columns * tile_columns, otherwise);
  };
  return {bounded, bound(bounds.lower, b.index(0), false), bound(bounds.upper, columns, true), largest_score};
}

Value go_through(kernel::Builder& b, const SkippableColumns& columns, Value column_count,
                 const std::function<Value(Value lo, Value hi)>& body) {
  const Value one = b.index(1);
  const kernel::Var all = b.var(b.constant_int(boolean, 0));
  b.for_loop(0, b.select(columns.bounded, b.index(2), one), 1, [&](Value pass) {
    b.for_loop(0, b.select(equal(pass, 0) || b.get(all), one, b.index(0)), 1, [&](Value) {
      const Value lo = b.select(b.get(all), b.index(0), columns.lo);
      const Value passed = body(lo, b.select(b.get(all), column_count, columns.hi));
      b.set(all, b.get(all) || kernel::logical_not(passed));
    });
  });
  return columns.bounded && kernel::logical_not(b.get(all));
}

}  // namespace lathe::gpu
