#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/cache_append_operands.h"

namespace lathe::gpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// One element per thread, which is written unless a later row has the same position.
KernelContext::Built update(const GpuContext& lowering, const CacheAppendOperands& operands) {
  KernelContext context("update_rows", KernelRole::cache_append);
  kernel::Builder& b = context.builder;
  const int out = lowering.buffer_of(operands.id);
  const ElementwiseProgram &rows = operands.rows.program, &positions = operands.positions.program;
  declare_buffers(context, {&rows, &positions}, lowering);
  context.declare(out, operands.node.type.dtype, false, true);
  context.writes_part_of(out);
  context.touches({{out, rows.domain.numel().unnamed()}});
  const std::int64_t code = context.check_code("an index is not in [0, " + operands.size.to_string() + ")");
  ElementwiseEmitter values(context, rows, lowering.buffer_of), offsets(context, positions, lowering.buffer_of);
  const Value columns = context.dim(rows.points(operands.post)), count = context.dim(operands.count),
              size = context.dim(operands.size);
  const auto position = [&](Value pre, Value t, Value column) {
    std::vector<IndexGroup> groups = {{operands.pre, pre, 1}, {{operands.dim}, t, 1}};
    if (operands.each) groups.push_back({operands.post, column, 1});
    Scope scope(offsets, std::move(groups));
    return b.cast(offsets.emit(operands.positions.result, scope), i64);
  };
  for_threads(b, context.dim(rows.domain.numel()), 1, [&](Value i) {
    const Value column = i % columns, t = i / columns % count, pre = i / columns / count;
    const Value at = position(pre, t, column);
    const Value inside = b.index(0) <= at && at < size;
    b.check(inside, code);
    const kernel::Var last = b.var(inside);
    b.for_loop(t + 1, count, 1, [&](Value s) {
      b.set(last, b.get(last) && kernel::logical_not(equal(position(pre, s, column), at)));
    });
    b.if_(b.get(last), [&] {
      std::vector<IndexGroup> groups = {{operands.pre, pre, 1}, {{operands.dim}, t, 1}};
      if (!operands.post.empty()) groups.push_back({operands.post, column, 1});
      Scope scope(values, std::move(groups));
      b.store(context.buffer(out), (pre * size + at) * columns + column,
              b.cast(values.emit(operands.rows.result, scope), operands.node.type.dtype));
    });
  });
  return context.finish();
}

KernelContext::Built copy(const GpuContext& lowering, const CacheAppendOperands& operands) {
  KernelContext context("copy_rows", KernelRole::copy_rows);
  kernel::Builder& b = context.builder;
  const OperandProgram old = operands.old();
  const int out = lowering.buffer_of(operands.id);
  declare_buffers(context, {&old.program}, lowering);
  context.declare(out, operands.node.type.dtype, false, true);
  ElementwiseEmitter emitter(context, old.program, lowering.buffer_of);
  std::vector<int> all;
  for (int d = 0; d < old.program.domain.rank(); ++d) all.push_back(d);
  for_threads(b, context.dim(old.program.domain.numel()), 1, [&](Value i) {
    Scope scope(emitter, {{all, i, 1}});
    b.store(context.buffer(out), i, b.cast(emitter.emit(old.result, scope), operands.node.type.dtype));
  });
  return context.finish();
}

}  // namespace

std::vector<KernelContext::Built> lower_update_rows(const GpuContext& context, const Region& region) {
  const CacheAppendOperands operands(context, region.members[0]);
  std::vector<KernelContext::Built> built;
  if (operands.copies()) built.push_back(copy(context, operands));
  built.push_back(update(context, operands));
  return built;
}

}  // namespace lathe::gpu
