#include "passes/machines/gpu_machine.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/join/join_launches.h"

namespace lathe {

namespace {

using gpu::GpuContext;
using gpu::GpuSizes;

/// Larger than on a CPU: a GPU has more bandwidth relative to compute, and a chunk costs more.
constexpr RowChunks gpu_chunks{.least_rows = 8192};

std::vector<KernelContext::Built> lower_rows(const GpuContext& context, const Region& region) {
  const bool reduces = std::any_of(region.members.begin(), region.members.end(),
                                   [&](ir::ValueId id) { return context.graph[id].op->as<ir::Reduce>() != nullptr; });
  if (reduces) return gpu::lower_rows(context, region);
  std::vector<KernelContext::Built> built;
  built.push_back(gpu::lower_points(context, region));
  return built;
}

/// Rows are summed where updates say, or replaced.
std::vector<KernelContext::Built> lower_scatter(const GpuContext& context, const Region& region) {
  return context.graph[region.members[0]].op == &ir::ops::update_rows ? gpu::lower_update_rows(context, region)
                                                                      : gpu::lower_scatter(context, region);
}

std::vector<KernelContext::Built> lower_product(const GpuContext& context, const Region& region) {
  if (gpu::is_gemv(context, region)) return gpu::lower_gemv(context, region);
  return gpu::suits_tensor_cores(context, region) ? gpu::lower_tensor_product(context, region)
                                                  : gpu::lower_product(context, region);
}

/// The last few ops of a launch, and the line of the last: "_softmax_mul_mha_cpp_14".
std::string origin(const Launch& launch) {
  constexpr std::size_t most = 3;
  std::vector<std::string_view> ops;
  for (const LaunchOp& op : launch.info.ops)
    if (op.value.valid() && (ops.empty() || ops.back() != op.op_name())) ops.push_back(op.op_name());
  if (ops.size() > most) ops.erase(ops.begin(), ops.end() - most);
  std::string text;
  for (const std::string_view op : ops) text += fmt::format("_{}", op);
  const std::string line = launch.loc.to_string();
  if (!ops.empty() && !line.empty()) text += "_" + line;
  return text;
}

/// Kernels are named after what they compute.
void name_kernels(Program& program) {
  std::set<int> named;
  const auto name_kernel = [&](const Launch& launch) {
    if (!named.insert(launch.kernel).second) return;
    std::string& name = program.kernels[launch.kernel].name;
    name += origin(launch);
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  };
  for (const Launch& launch : program.launches) name_kernel(launch);
  for (const Collective& collective : program.collectives)
    for (const Collective::Part& part : collective.parts)
      if (part.fold) name_kernel(*part.fold);
}

/// Larger values are those of training steps and prompts, whose memory matters and whose launches are not joined.
constexpr std::int64_t overwritten_bytes = 64 << 10;

using GpuSchedule = std::vector<KernelContext::Built> (*)(const GpuContext&, const Region&);

/// Returns a schedule for this GPU and these sizes.
RegionSchedule bind(GpuSchedule schedule, const GpuInfo& gpu, const GpuSizes& sizes) {
  return
      [=](const LoweringContext& context, const Region& region) { return schedule({context, gpu, sizes}, region); };
}

}  // namespace

Machine gpu_machine(const GpuInfo& gpu, const gpu::GpuSizes& sizes) {
  if (gpu.warp_threads != kernel::warp_threads)
    throw InternalError(
        fmt::format("{} has warps of {} threads; those of the loop IR, of its mma and from_lane, have {}", gpu.name,
                    gpu.warp_threads, kernel::warp_threads));
  const auto of = [&](GpuSchedule schedule) { return bind(schedule, gpu, sizes); };
  return {.info = gpu,
          .schedules = {{RegionKind::rows, of(lower_rows)},
                        {RegionKind::product, of(lower_product)},
                        {RegionKind::columns, of(gpu::lower_columns)},
                        {RegionKind::scatter, of(lower_scatter)},
                        {RegionKind::attention, of(gpu::lower_attention)},
                        {RegionKind::scan, of(gpu::lower_scan)},
                        {RegionKind::sort, of(gpu::lower_sort)},
                        {RegionKind::grouped, of(gpu::lower_grouped)},
                        {RegionKind::triangular, of(gpu::lower_triangular)}},
          .copy = gpu::lower_copy,
          .fold = gpu::lower_fold,
          .fusion = {.attention_sums = OuterReductions::all,
                     .attention_delta = AttentionDelta{.converted = true, .narrow_only = true},
                     .copied_operands = sizes.products.copied_rows,
                     .row_operands = {.rows = sizes.products.gemv_rows,
                                      .bytes = sizes.products.row_operand_bytes,
                                      .columns = sizes.products.row_operand_columns}},
          .chunks = gpu_chunks,
          .casts_before_views = true,
          .padded_products = sizes.padding,
          .finish = name_kernels,
          .join_launches = [gpu](Program& program) { gpu::join_launches(program, gpu); },
          .streamed_rows = sizes.products.gemv_rows,
          .overwritten_bytes = overwritten_bytes};
}

}  // namespace lathe
