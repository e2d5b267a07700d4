#include "ir/ops/primitives/primitives.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/along_dim.h"

namespace lathe::gpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

/// One element per thread: its position is the number of elements before it in the order.
std::vector<KernelContext::Built> lower_sort(const GpuContext& context, const Region& region) {
  const AlongDim along(context, region.members[0]);
  const bool descending = ranks_descending(along.node), selects = along.node.op == &ir::ops::top_k;
  KernelContext kernel(selects ? "top_k" : "argsort", selects ? KernelRole::top_k : KernelRole::sort);
  kernel::Builder& b = kernel.builder;
  const int out = context.buffer_of(region.members[0]);
  declare_buffers(kernel, {&along.operand.program}, context);
  kernel.declare(out, i64, false, true);
  ElementwiseEmitter elements(kernel, along.operand.program, context.buffer_of);
  const Value size = kernel.dim(along.size), columns = kernel.dim(along.columns),
              count = kernel.dim(along.node.type.shape[along.dim].unnamed());
  const auto element = [&](Value pre, Value t, Value column) {
    Scope scope(elements, along.element(pre, t, column));
    return elements.emit(along.operand.result, scope);
  };
  for_threads(b, kernel.dim(along.rows) * size * columns, 1, [&](Value i) {
    const Value column = i % columns, t = i / columns % size, pre = i / columns / size;
    const Value own = element(pre, t, column);
    const kernel::Var rank = b.var(b.index(0));
    const auto count_before = [&](Value lo, Value hi, const std::function<Value(Value)>& stands_before) {
      b.for_loop(lo, hi, 1, [&](Value s) {
        const Value before = stands_before(element(pre, s, column));
        b.set(rank, b.get(rank) + b.select(before, b.index(1), b.index(0)));
      });
    };
    // Of the elements before it in the row, equal ones count too.
    count_before(b.index(0), t, [&](Value x) { return kernel::logical_not(ranks_before(b, own, x, descending)); });
    count_before(t + 1, size, [&](Value x) { return ranks_before(b, x, own, descending); });
    const auto store = [&] { b.store(kernel.buffer(out), (pre * count + b.get(rank)) * columns + column, t); };
    selects ? b.if_(b.get(rank) < count, store) : store();
  });
  std::vector<KernelContext::Built> built;
  built.push_back(kernel.finish());
  return built;
}

}  // namespace lathe::gpu
