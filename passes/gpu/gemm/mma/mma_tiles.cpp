#include "passes/gpu/gemm/mma/mma_tiles.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe::gpu {

namespace {

// Times are estimated from the bytes that a block reads from shared and global memory, and from the share of the
// tensor cores' rate that mma and wgmma reach on large tiles; not measured.
constexpr TensorTile tiles[] = {{128, 128, 2, 4, 1.0},
                                {64, 64, 2, 2, 0.36},
                                {16, 64, 1, 4, 0.2},
                                {128, 256, 8, 1, 1.5, true},
                                {128, 128, 8, 1, 0.85, true}};
constexpr int unit_side = 128, unit_depth = 32;   // of the tile and depth whose time is 1
constexpr std::int64_t late_tensor_size = 32768;  // assumed value of a size that is bound late
constexpr int cuts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16};

std::int64_t parts(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

}  // namespace

std::string to_string(const TensorPlan& plan) {
  const TensorTile& tile = plan.tile;
  const int warps = tile.warps_down * tile.warps_across;
  std::string text =
      fmt::format("{} x {} by {}", tile.rows, tile.columns,
                  tile.of_warpgroups ? fmt::format("{} warpgroups", warps / 4) : fmt::format("{} warps", warps));
  if (plan.splits > 1) text += fmt::format(", {} splits", plan.splits);
  return text;
}

std::vector<TensorPlan> plan_tensor_product(const GpuInfo& gpu, std::optional<std::int64_t> batch,
                                            std::optional<std::int64_t> m, std::optional<std::int64_t> n,
                                            std::optional<std::int64_t> k, bool warpgroups) {
  const std::int64_t large = late_tensor_size, batches = batch.value_or(large), rows = m.value_or(large),
                     columns = n.value_or(large), depth = k.value_or(large),
                     multiprocessors = estimated_multiprocessors;
  const double unit = 2.0 * unit_side * unit_side * unit_depth / gpu.tensor_flops;
  std::vector<std::pair<double, TensorPlan>> plans;
  for (const TensorTile& tile : tiles)
    for (const int splits : cuts) {
      if ((splits > 1 && !(batch && m && n)) || (tile.of_warpgroups && !warpgroups)) continue;
      const std::int64_t blocks = batches * parts(rows, tile.rows) * parts(columns, tile.columns) * splits;
      double time =
          static_cast<double>(parts(blocks, multiprocessors) * parts(depth, unit_depth * splits)) * tile.time;
      const double bytes = 8.0 * splits * static_cast<double>(batches * rows * columns);  // written and read
      if (splits > 1) time += gpu.launch_seconds / unit + bytes / (gpu.bytes_per_second * unit);
      plans.push_back({time, {tile, splits}});
    }
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const TensorPlan best = plans.front().second;
  std::vector<TensorPlan> alike;
  for (const auto& [time, plan] : plans)
    if (plan.tile.of_warpgroups == best.tile.of_warpgroups && plan.splits == best.splits) alike.push_back(plan);
  return alike;
}

}  // namespace lathe::gpu
