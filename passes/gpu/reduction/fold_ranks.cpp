#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe::gpu {

using kernel::Value;

KernelContext::Built lower_fold(const HardwareInfo&, DType dtype, ScalarOp combine, int received, int folded,
                                const Dim& elements, std::int64_t ranks) {
  const DType compute = compute_type(dtype);
  KernelContext context("fold", KernelRole::fold_ranks);
  context.declare(received, dtype, true, false);
  context.declare(folded, dtype, false, true);
  kernel::Builder& b = context.builder;
  const Value processes = context.argument(ranks);
  const Value n = b.ceil_div(context.dim(elements), processes);
  for_threads(b, n, 1, [&](Value i) {
    const auto piece = [&](Value at) { return b.cast(b.load(context.buffer(received), at), compute); };
    const kernel::Var result = b.var(piece(i));
    b.for_loop(1, processes, 1,
               [&](Value process) { b.set(result, b.apply(combine, {b.get(result), piece(process * n + i)})); });
    b.store(context.buffer(folded), i, b.cast(b.get(result), dtype));
  });
  return context.finish();
}

}  // namespace lathe::gpu
