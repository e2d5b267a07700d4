#include "passes/cpu/cpu_kernels.h"

namespace lathe::cpu {

KernelContext::Built lower_copy(const HardwareInfo& machine, DType dtype, int from, int to, const Dim& elements) {
  const auto& cpu = std::get<CpuInfo>(machine);
  const std::int64_t chunk = task_elements(cpu);
  KernelContext context("copy", KernelRole::copy);
  context.declare(from, dtype, true, false);
  context.declare(to, dtype, false, true);
  kernel::Builder& b = context.builder;
  const kernel::Value n = context.dim(elements);
  const int lanes = cpu.vectors.lanes(dtype);
  b.parallel_for(0, n, chunk, [&](kernel::Value lo) {
    vector_loop(b, lo, kernel::min(lo + chunk, n), lanes, [&](kernel::Value i, kernel::Value mask) {
      b.store(context.buffer(to), i, b.load(context.buffer(from), i, lanes, mask), mask);
    });
  });
  auto built = context.finish();
  built.launch.work = chunk;
  return built;
}

KernelContext::Built lower_fold(const HardwareInfo& machine, DType dtype, ScalarOp combine, int received, int folded,
                                const Dim& elements, std::int64_t ranks) {
  const auto& cpu = std::get<CpuInfo>(machine);
  const std::int64_t chunk = task_elements(cpu);
  const DType compute = compute_type(dtype);
  KernelContext context("fold", KernelRole::fold_ranks);
  context.declare(received, dtype, true, false);
  context.declare(folded, dtype, false, true);
  kernel::Builder& b = context.builder;
  const kernel::Value processes = context.argument(ranks);
  const kernel::Value n = b.ceil_div(context.argument(elements), processes);
  const int lanes = cpu.vectors.lanes(compute);
  b.parallel_for(0, n, chunk, [&](kernel::Value lo) {
    vector_loop(b, lo, kernel::min(lo + chunk, n), lanes, [&](kernel::Value i, kernel::Value mask) {
      const auto part = [&](kernel::Value at) {
        return b.cast(b.load(context.buffer(received), at, lanes, mask), compute);
      };
      const kernel::Var result = b.var(part(i));
      b.for_loop(1, processes, 1, [&](kernel::Value process) {
        b.set(result, b.apply(combine, {b.get(result), part(process * n + i)}));
      });
      b.store(context.buffer(folded), i, b.cast(b.get(result), dtype), mask);
    });
  });
  auto built = context.finish();
  built.launch.work = chunk * Dim(ranks);
  return built;
}

}  // namespace lathe::cpu
