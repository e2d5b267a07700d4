#include "passes/cpu/lower_cpu.h"

#include <iterator>
#include <set>

#include "ir/ops/list.h"

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

std::vector<KernelContext::Built> region_kernels(const LoweringContext& context, const Region& region) {
  std::vector<KernelContext::Built> built;
  for (const ValueId scatter : row_sums(context, region))
    built.push_back(scatter_positions(context, scatter, context.buffer_of(scatter)));
  const auto append = [&](std::vector<KernelContext::Built> kernels) {
    built.insert(built.end(), std::make_move_iterator(kernels.begin()), std::make_move_iterator(kernels.end()));
  };
  switch (region.kind) {
    case RegionKind::rows: append(row_kernels(context, region)); break;
    case RegionKind::columns: append(lower_columns(context, region)); break;
    case RegionKind::scatter: append(scatter_kernels(context, region)); break;
    case RegionKind::product: append(lower_product(context, region)); break;
    case RegionKind::attention: append(lower_attention(context, region)); break;
  }
  return built;
}

KernelContext::Built copy_kernel(const VectorTarget& target, DType dtype, int from, int to, const Dim& elements) {
  constexpr int chunk = 8192;
  KernelContext context("copy");
  context.declare(from, dtype, true, false);
  context.declare(to, dtype, false, true);
  kernel::Builder& b = context.builder;
  const kernel::Value n = context.dim(elements);
  const int lanes = target.lanes(dtype);
  b.parallel_for(0, n, chunk, [&](kernel::Value lo) {
    vector_loop(b, lo, kernel::min(lo + chunk, n), lanes, [&](kernel::Value i, kernel::Value mask) {
      b.store(context.buffer(to), i, b.load(context.buffer(from), i, lanes, mask), mask);
    });
  });
  auto built = context.finish();
  built.launch.work = chunk;
  return built;
}

}  // namespace

}  // namespace lathe::cpu

namespace lathe {

AttentionCosts attention_costs(const VectorTarget& target) {
  return target.tiles && target.bits == 512 ? AttentionCosts::tiles : AttentionCosts::vectors;
}

Machine cpu_machine(const VectorTarget& target, AttentionCosts costs) {
  return {.vectors = target,
          .region = cpu::region_kernels,
          .copy = cpu::copy_kernel,
          .fusion = {.attention_sums = OuterSums::wide,
                     .attention_costs = costs,
                     .attention_blocks = true,
                     .columns = true,
                     .scatter_in_place = true,
                     .row_sums = true}};
}

Program lower_cpu(const ir::Graph& graph, const VectorTarget& target, const LowerOptions& options) {
  return lower(graph, cpu_machine(target), options);
}

}  // namespace lathe
