#include "passes/gpu/gemm/mma/mma_tiles.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe::gpu {

namespace {

constexpr TensorTile tiles[] = {{128, 128, 2, 4, &TensorTileCosts::mma_128x128},
                                {64, 64, 2, 2, &TensorTileCosts::mma_64x64},
                                {16, 64, 1, 4, &TensorTileCosts::mma_16x64},
                                {128, 256, 8, 1, &TensorTileCosts::wgmma_128x256, true},
                                {128, 128, 8, 1, &TensorTileCosts::wgmma_128x128, true}};
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
  const std::int64_t large = gpu.products.late_tensor_size, batches = batch.value_or(large), rows = m.value_or(large),
                     columns = n.value_or(large), depth = k.value_or(large),
                     multiprocessors = gpu.estimated_multiprocessors;
  // The unit of time is that of the tile whose cost is 1.
  constexpr int of_time = TensorTileCosts::depth;
  const double unit = 2.0 * TensorTileCosts::side * TensorTileCosts::side * of_time / gpu.tensor_flops;
  std::vector<std::pair<double, TensorPlan>> plans;
  for (const TensorTile& tile : tiles)
    for (const int splits : cuts) {
      if ((splits > 1 && !(batch && m && n)) || (tile.of_warpgroups && !warpgroups)) continue;
      const std::int64_t blocks = batches * parts(rows, tile.rows) * parts(columns, tile.columns) * splits;
      double time =
          static_cast<double>(parts(blocks, multiprocessors) * parts(depth, of_time * splits)) * gpu.tiles.*tile.time;
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
