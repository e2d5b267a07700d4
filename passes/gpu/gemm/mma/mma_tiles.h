#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/machine/gpu_info.h"
#include "passes/lowering/region_kernels.h"

namespace lathe::gpu {

/// The sums of a block of threads, by warps below each other and side by side.
struct TensorTile {
  int rows, columns, warps_down, warps_across;
  double TensorTileCosts::* time;
  bool of_warpgroups = false;  ///< by wgmma: warps below each other, four a warpgroup

  int threads() const { return warps_down * warps_across * kernel::warp_threads; }
  int warp_rows() const { return rows / warps_down; }
  int warp_columns() const { return columns / warps_across; }
};

/// How a product is shared out: a block for every tile and every one of `splits` splits of what is summed over; sums
/// of splits are added by a second kernel, in order.
struct TensorPlan {
  TensorTile tile;
  int splits = 1;
};

/// A contraction by warpgroups, by a plan that says so: wgmma_product.cpp.
std::vector<KernelContext::Built> lower_wgmma_product(const LoweringContext& context, const Region& region,
                                                      const TensorPlan& plan);

/// "128 x 128 by 8 warps", "128 x 256 by 2 warpgroups, 4 splits".
std::string to_string(const TensorPlan& plan);

/// Plans, the one first that ends first by an estimate, then those with other tiles of the same kind and as many
/// splits, which give the same bits, as they are estimated: so many blocks as it has multiprocessors run at a time,
/// and a second kernel costs a launch and the traffic of the splits. Sizes that are known only at run time count as
/// large; a product with rows or columns of unknown number is not cut into splits. Tiles of warpgroups are
/// among them where `warpgroups`.
std::vector<TensorPlan> plan_tensor_product(const GpuInfo& gpu, std::optional<std::int64_t> batch,
                                            std::optional<std::int64_t> m, std::optional<std::int64_t> n,
                                            std::optional<std::int64_t> k, bool warpgroups = false);

}  // namespace lathe::gpu
