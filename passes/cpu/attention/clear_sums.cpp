#include "passes/cpu/attention/clear_sums.h"

#include "passes/cpu/cpu_kernels.h"

namespace lathe::cpu {

using kernel::Value;

namespace {

struct DomainDims {
  std::vector<int> kept, summed;
};

DomainDims dims_of(const ElementwiseProgram& program, int sum) {
  DomainDims found;
  for (int d = 0; d < program.domain.rank(); ++d) {
    const bool kept = (program.depends[sum] >> d & 1) != 0;
    (kept ? found.kept : found.summed).push_back(d);
  }
  return found;
}

KernelContext::Built clear(const CpuContext& lowering, const ElementwiseProgram& program, const ElementwiseStore& sum,
                           const DomainDims& dims) {
  const DType dtype = program[sum.value].dtype;
  KernelContext context("clear", KernelRole::clear);
  context.declare(lowering.buffer_of(sum.node), dtype, false, true);
  context.touches({{lowering.buffer_of(sum.node), Dim(0)}});
  ElementwiseEmitter emitter(context, program, lowering.buffer_of);
  kernel::Builder& b = context.builder;
  const Value nothing = kernel::equal(context.dim(program.points(dims.summed)), b.index(0));
  const Value n = b.select(nothing, context.dim(program.points(dims.kept)), b.index(0));
  const int lanes = lowering.vectors().lanes(dtype);
  const std::int64_t chunk = task_elements(lowering.cpu);
  b.parallel_for(0, n, chunk, [&](Value lo) {
    vector_loop(b, lo, kernel::min(lo + chunk, n), lanes, [&](Value i, Value mask) {
      ElementwiseEmitter::Scope scope(emitter, {{dims.kept, i, lanes}}, mask);
      emitter.store(sum.node, dtype, sum.form, b.constant(compute_type(dtype), 0, lanes), scope);
    });
  });
  auto built = context.finish();
  built.launch.work = Dim(chunk);
  return built;
}

}  // namespace

std::vector<KernelContext::Built> clear_sums_over_nothing(const CpuContext& lowering, const Region& region) {
  const ElementwiseProgram program = region_program(lowering.graph, lowering.plan, region);
  std::vector<KernelContext::Built> built;
  for (const ElementwiseStore& store : program.stores) {
    if (program[store.value].kind != ElementwiseInstruction::Kind::column) continue;
    const DomainDims dims = dims_of(program, store.value);
    if (program.points(dims.summed).value().value_or(0) == 0) built.push_back(clear(lowering, program, store, dims));
  }
  return built;
}

}  // namespace lathe::cpu
