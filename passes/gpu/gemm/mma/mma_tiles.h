#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/hardware/gpu_info.h"
#include "passes/gpu/gpu_context.h"

namespace lathe::gpu {

/// The sums of a thread block, distributed over a grid of warps.
struct TensorTile {
  int rows, columns, warps_down, warps_across;
  /// Time that a multiprocessor needs for the products over depth 32, with many blocks in the launch. The unit is the
  /// time of a 128 x 128 tile by mma. Smaller tiles read more per product.
  double time;
  bool of_warpgroups = false;  ///< by wgmma: warps below each other, four per warpgroup

  int threads() const { return warps_down * warps_across * kernel::warp_threads; }
  int warp_rows() const { return rows / warps_down; }
  int warp_columns() const { return columns / warps_across; }
};

/// How a matmul is distributed: one block per tile and per split of the summed dim. A second kernel adds the sums of
/// splits in order.
struct TensorPlan {
  TensorTile tile;
  int splits = 1;
};

/// Lowers a contraction by a plan for warpgroups: wgmma_product.cpp.
std::vector<KernelContext::Built> lower_wgmma_product(const GpuContext& context, const Region& region,
                                                      const TensorPlan& plan);

/// "128 x 128 by 8 warps", "128 x 256 by 2 warpgroups, 4 splits".
std::string to_string(const TensorPlan& plan);

/// Returns plans: first the one with the shortest estimated time, then those with other tiles of the same kind and as
/// many splits, which give the same bits, in the order of their estimates. The estimate assumes that as many blocks
/// run at a time as the GPU has multiprocessors; a second kernel costs a launch and the traffic of the splits. Sizes
/// that are known only at run time are treated as large; a matmul with an unknown number of rows or columns is not
/// split. Tiles of warpgroups are included if `warpgroups`.
std::vector<TensorPlan> plan_tensor_product(const GpuInfo& gpu, std::optional<std::int64_t> batch,
                                            std::optional<std::int64_t> m, std::optional<std::int64_t> n,
                                            std::optional<std::int64_t> k, bool warpgroups = false);

}  // namespace lathe::gpu
