#include "passes/machines/cpu_machine.h"

#include <set>

#include "ir/ops/primitives/primitives.h"
#include "passes/cpu/cpu_kernels.h"

namespace lathe {

namespace {

using cpu::CpuContext;
using cpu::CpuSizes;

std::vector<KernelContext::Built> row_kernels(const CpuContext& context, const Region& region) {
  auto special = cpu::lower_cache_append(context, region);
  if (!special) special = cpu::lower_transposed(context, region);
  if (!special) return cpu::lower_rows(context, region);
  std::vector<KernelContext::Built> built;
  built.push_back(std::move(*special));
  return built;
}

/// The scatter_adds whose updates a region sums for itself.
std::set<ir::ValueId> row_sums(const CpuContext& context, const Region& region) {
  std::set<ir::ValueId> found;
  std::vector<ir::ValueId> work = region.members;
  while (!work.empty()) {
    const ir::ValueId id = work.back();
    work.pop_back();
    for (const ir::ValueId operand : context.graph[id].operands) {
      if (!context.plan.is_inlined(operand)) continue;
      if (context.graph[operand].op == &ir::ops::scatter_add)
        found.insert(operand);
      else
        work.push_back(operand);
    }
  }
  return found;
}

std::vector<KernelContext::Built> scatter_kernels(const CpuContext& context, const Region& region) {
  const bool replaces = context.graph[region.members[0]].op == &ir::ops::update_rows;
  return replaces ? cpu::lower_update_rows(context, region) : cpu::lower_scatter(context, region);
}

/// Positions of the updates that a region sums for itself.
std::vector<KernelContext::Built> sort_positions(const CpuContext& context, const Region& region) {
  std::vector<KernelContext::Built> built;
  for (const ir::ValueId scatter : row_sums(context, region))
    built.push_back(cpu::scatter_positions(context, scatter, context.buffer_of(scatter)));
  return built;
}

/// Bytes of each process that a reduction in memory processes at a time: the most recently received ones are still in
/// a cache.
constexpr std::int64_t folded_bytes = 512 << 10;

using CpuSchedule = std::vector<KernelContext::Built> (*)(const CpuContext&, const Region&);

/// Returns a schedule for this CPU and these sizes.
RegionSchedule bind(CpuSchedule schedule, const CpuInfo& cpu, const CpuSizes& sizes) {
  return
      [=](const LoweringContext& context, const Region& region) { return schedule({context, cpu, sizes}, region); };
}

}  // namespace

Machine cpu_machine(const CpuInfo& cpu) { return cpu_machine(cpu, cpu::cpu_sizes(cpu)); }

Machine cpu_machine(const CpuInfo& cpu, const cpu::CpuSizes& sizes) {
  const auto of = [&](CpuSchedule schedule) { return bind(schedule, cpu, sizes); };
  return {.info = cpu,
          .schedules = {{RegionKind::rows, of(row_kernels)},
                        {RegionKind::product, of(cpu::lower_product)},
                        {RegionKind::columns, of(cpu::lower_columns)},
                        {RegionKind::scatter, of(scatter_kernels)},
                        {RegionKind::attention, of(cpu::lower_attention)},
                        {RegionKind::scan, of(cpu::lower_scan)},
                        {RegionKind::sort, of(cpu::lower_sort)},
                        {RegionKind::grouped, of(cpu::lower_grouped)},
                        {RegionKind::triangular, of(cpu::lower_triangular)}},
          .before = of(sort_positions),
          .copy = cpu::lower_copy,
          .fold = cpu::lower_fold,
          .folded_bytes = folded_bytes,
          .fusion = {.attention_sums = OuterReductions::f32_and_f64,
                     .attention_costs = AttentionCostModel{cpu, sizes.attention_costs},
                     .attention_decode = true,
                     .attention_delta = AttentionDelta{.block_bytes = cpu.l2.share()},
                     .most_columns = cpu::task_elements(cpu),
                     .scatter_in_place = true,
                     .row_sums = true,
                     .most_gathers = 1},
          .streamed_rows = sizes.products.limits.gemv_rows,
          .keeps_budgets = true};
}

}  // namespace lathe
