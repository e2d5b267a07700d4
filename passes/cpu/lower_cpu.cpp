#include "passes/cpu/lower_cpu.h"

#include <set>

#include "ir/ops/primitives.h"

#include "passes/cpu/cpu_kernels.h"

namespace lathe::cpu {

using namespace ir;

namespace {

std::vector<KernelContext::Built> row_kernels(const LoweringContext& context, const Region& region) {
  auto update = lower_row_update(context, region);
  if (!update) return lower_rows(context, region);
  std::vector<KernelContext::Built> built;
  built.push_back(std::move(*update));
  return built;
}

/// The scatter_adds whose updates a region sums for itself.
std::set<ValueId> row_sums(const LoweringContext& context, const Region& region) {
  std::set<ValueId> found;
  std::vector<ValueId> work = region.members;
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    for (const ValueId operand : context.graph[id].operands) {
      if (!context.plan.is_inlined(operand)) continue;
      if (context.graph[operand].op == &ops::scatter_add)
        found.insert(operand);
      else
        work.push_back(operand);
    }
  }
  return found;
}

std::vector<KernelContext::Built> scatter_kernels(const LoweringContext& context, const Region& region) {
  const bool replaces = context.graph[region.members[0]].op == &ops::update_rows;
  return replaces ? lower_update_rows(context, region) : lower_scatter(context, region);
}

/// Positions of the updates that a region sums for itself.
std::vector<KernelContext::Built> sort_positions(const LoweringContext& context, const Region& region) {
  std::vector<KernelContext::Built> built;
  for (const ValueId scatter : row_sums(context, region))
    built.push_back(scatter_positions(context, scatter, context.buffer_of(scatter)));
  return built;
}

KernelContext::Built copy_kernel(const MachineInfo& machine, DType dtype, int from, int to, const Dim& elements) {
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

/// The pieces of all processes lie one after the other; each element is folded in their order.
KernelContext::Built fold_kernel(const MachineInfo& machine, DType dtype, ScalarOp combine, int received, int folded,
                                 const Dim& elements, std::int64_t ranks) {
  const auto& cpu = std::get<CpuInfo>(machine);
  const std::int64_t chunk = task_elements(cpu);
  const DType compute = compute_type(dtype);
  KernelContext context("fold", KernelRole::fold_ranks);
  context.declare(received, dtype, true, false);
  context.declare(folded, dtype, false, true);
  kernel::Builder& b = context.builder;
  const kernel::Value processes = context.argument(ranks);
  const kernel::Value n = b.ceil_div(context.dim(elements), processes);
  const int lanes = cpu.vectors.lanes(compute);
  b.parallel_for(0, n, chunk, [&](kernel::Value lo) {
    vector_loop(b, lo, kernel::min(lo + chunk, n), lanes, [&](kernel::Value i, kernel::Value mask) {
      const auto piece = [&](kernel::Value at) {
        return b.cast(b.load(context.buffer(received), at, lanes, mask), compute);
      };
      const kernel::Var result = b.var(piece(i));
      b.for_loop(1, processes, 1, [&](kernel::Value process) {
        b.set(result, b.apply(combine, {b.get(result), piece(process * n + i)}));
      });
      b.store(context.buffer(folded), i, b.cast(b.get(result), dtype), mask);
    });
  });
  auto built = context.finish();
  built.launch.work = chunk * Dim(ranks);
  return built;
}

}  // namespace

}  // namespace lathe::cpu

namespace lathe {

Machine cpu_machine(const CpuInfo& cpu) {
  return {.info = cpu,
          .schedules = {{RegionKind::rows, cpu::row_kernels},
                        {RegionKind::product, cpu::lower_product},
                        {RegionKind::columns, cpu::lower_columns},
                        {RegionKind::scatter, cpu::scatter_kernels},
                        {RegionKind::attention, cpu::lower_attention},
                        {RegionKind::scan, cpu::lower_scan},
                        {RegionKind::sort, cpu::lower_sort},
                        {RegionKind::grouped, cpu::lower_grouped}},
          .before = cpu::sort_positions,
          .copy = cpu::copy_kernel,
          .fold = cpu::fold_kernel,
          .fusion = {.attention_sums = OuterReductions::f32_and_f64,
                     .attention_costs = cpu,
                     .attention_few_rows = true,
                     .attention_block_bytes = cpu.l2.share(),
                     .most_columns = cpu::task_elements(cpu),
                     .scatter_in_place = true,
                     .row_sums = true},
          .chunks = cpu.chunks};
}

Program lower_cpu(const ir::Graph& graph, const CpuInfo& cpu, const LowerOptions& options) {
  return lower(graph, cpu_machine(cpu), options);
}

}  // namespace lathe
