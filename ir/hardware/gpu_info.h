#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/hardware/gpu_product_sizes.h"
#include "ir/hardware/row_chunks.h"
#include "ir/hardware/vector_registers.h"

namespace lathe {

/// Time that a multiprocessor needs for the products of an accumulator tile over depth 32, with many blocks in the
/// launch. The unit is the time of a 128 x 128 tile by mma. Smaller tiles read more per product. Estimated from the
/// bytes that a block reads from shared and global memory, and from the share of the tensor cores' rate that mma and
/// wgmma reach on large tiles; not measured.
struct TensorTileCosts {
  static constexpr int side = 128, depth = 32;  ///< of the unit tile
  double mma_128x128 = 1.0, mma_64x64 = 0.36, mma_16x64 = 0.2;
  double wgmma_128x256 = 1.5, wgmma_128x128 = 0.85;
  bool operator==(const TensorTileCosts&) const = default;
};

/// How a pipeline's warpgroups exchange 32-bit registers (setmaxnreg), per thread. A multiprocessor has 64 Ki
/// registers: `all` for each of the 128 threads of a warpgroup.
struct WarpgroupRegisters {
  int all = 512;
  int producer = 24;  ///< kept by a warpgroup that only copies: the minimum for setmaxnreg
  int most = 240;     ///< maximum for a warpgroup that multiplies
  int step = 8;       ///< granularity of setmaxnreg
  bool operator==(const WarpgroupRegisters&) const = default;
};

/// Register budget per thread in wgmma attentions; determined with ptxas.
struct AttentionRegisters {
  int others = 72;                  ///< registers of a multiplying thread other than sums, scores and saved values
  int most_sums = 128;              ///< maximum for the accumulators of all matmuls that reduce rows or columns
  int sums_beside_whole_tile = 64;  ///< maximum accumulators that leave room for the scores of a whole tile
  int most_depth = 256;             ///< maximum depth of the scores and of the row results
  int columns = 64;                 ///< columns of a score tile
  int of_three_blocks = 64;         ///< maximum accumulators and scores for three blocks per multiprocessor
  int of_two_blocks = 96;           ///< same for two blocks
  bool operator==(const AttentionRegisters&) const = default;
};

/// Hardware facts of a GPU for schedules and estimates: CUDA's limits, chip resources, and rates for estimates.
/// Schedules and estimates take every hardware number from here, so that a new GPU only needs an entry in
/// gpu_info.cpp.
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
  int block_threads = 256;            ///< default block size; a schedule may choose another
  int multiprocessors = 108;
  std::int64_t most_shared_bytes = 163 << 10;    ///< maximum per block, with opting in
  std::int64_t reserved_shared_bytes = 1 << 10;  ///< reserved by the system, per block
  bool wgmma = false;                            ///< also implies TMA, mbarriers and setmaxnreg
  AttentionRegisters attention = {};
  /// Threads of a block with accumulator tiles at or above which ptxas needs a limit of one block per multiprocessor.
  /// Without it, ptxas spills.
  int lone_block_threads = 256;
  GpuProductSizes products = {};
  int most_splits = 512;  ///< maximum splits of a long reduction; a block of a later kernel combines the results
  /// Positions of a scatter_add that a block sorts in shared memory, 8 bytes each: a power of two. More positions
  /// take longer to sort, but make it faster to find those of a row.
  std::int64_t sorted_positions = 2048;

  // Costs.
  int estimated_multiprocessors = 128;  ///< same for all GPUs: it determines how sums are split, and thus their bits
  double bytes_per_second = 3e12;       ///< memory bandwidth
  double launch_seconds = 3e-6;         ///< cost of an additional kernel launch
  double load_seconds = 0.6e-6;         ///< time between a thread's loads of two vectors
  double tensor_flops = 4.5e12;         ///< bf16 by mma, per second and multiprocessor
  double fma_flops = 0.18e12;  ///< f32 without tensor cores, per second and multiprocessor; from the data sheet
  double memory_work = 32;     ///< cost of moving an element through memory, in multiply-adds; not measured
  TensorTileCosts tiles = {};
  /// Larger chunks than on a CPU: more bandwidth relative to compute, and a higher cost per chunk.
  RowChunks chunks = {.least_rows = 8192};

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
