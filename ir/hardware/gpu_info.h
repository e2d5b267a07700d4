#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/hardware/vector_registers.h"

namespace lathe {

/// How a pipeline's warpgroups exchange 32-bit registers (setmaxnreg), per thread. A multiprocessor has 64 Ki
/// registers: `all` for each of the 128 threads of a warpgroup.
struct WarpgroupRegisters {
  int all = 512;
  int producer = 24;  ///< kept by a warpgroup that only copies: the minimum for setmaxnreg
  int most = 240;     ///< maximum for a warpgroup that multiplies
  int step = 8;       ///< granularity of setmaxnreg
  bool operator==(const WarpgroupRegisters&) const = default;
};

/// Hardware facts of a GPU for schedules and estimates: CUDA's limits, chip resources, and rates for estimates.
/// Tuned sizes are not facts: they are next to the schedules that use them (passes/gpu/gpu_sizes.h).
struct GpuInfo {
  std::string_view name = "sm_80";  ///< exact architecture; also used for newer ones without an entry
  std::string_view chips = "A100";

  // Limits.
  int warp_threads = 32;  ///< must match the kernel IR's warp size; otherwise no kernels are generated
  int most_block_threads = 1024;
  std::array<std::int64_t, 3> most_blocks = {INT32_MAX, 65535, 65535};  ///< per launch, along x, y, z
  std::int64_t static_shared_bytes = 48 << 10;                          ///< per block, without opting in
  WarpgroupRegisters warpgroup_registers = {};                          ///< if `wgmma` is set
  int most_box_dims = 5;                                                ///< maximum rank for TMA box copies

  VectorRegisters vectors{128, 255};  ///< load and store width of a thread: 16 bytes
  int multiprocessors = 108;
  std::int64_t most_shared_bytes = 163 << 10;    ///< maximum per block, with opting in
  std::int64_t reserved_shared_bytes = 1 << 10;  ///< reserved by the system, per block
  std::int64_t l2_bytes = 40 << 20;
  bool wgmma = false;  ///< also implies TMA, mbarriers and setmaxnreg

  // Costs.
  double bytes_per_second = 3e12;  ///< memory bandwidth
  double launch_seconds = 3e-6;    ///< cost of an additional kernel launch
  double load_seconds = 0.6e-6;    ///< time between a thread's loads of two vectors
  double tensor_flops = 4.5e12;    ///< bf16 by mma, per second and multiprocessor
  double fma_flops = 0.18e12;      ///< f32 without tensor cores, per second and multiprocessor; from the data sheet

  /// Peak bf16 matmul rate by mma, in operations per second.
  double product_flops() const { return multiprocessors * tensor_flops; }
  /// Same for f32 without tensor cores.
  double plain_product_flops() const { return multiprocessors * fma_flops; }
  bool operator==(const GpuInfo&) const = default;
};

/// Returns all entries, smallest first.
std::span<const GpuInfo> gpu_infos();
/// Returns the entry of that name, such as "sm_90a", or the smallest entry if there is no match.
const GpuInfo& gpu_info(std::string_view name);

/// Returns the f32 multiply-adds per clock of a multiprocessor, by compute capability (80 for 8.0).
int fma_lanes(int capability);

/// Returns human-readable lines, one number per line.
std::string to_string(const GpuInfo& info);

}  // namespace lathe
