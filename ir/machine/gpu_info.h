#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/machine/gpu_product_sizes.h"
#include "ir/machine/row_chunks.h"
#include "ir/machine/vector_registers.h"

namespace lathe {

/// How long a multiprocessor takes for the products of a tile of sums, 32 deep, where there are many blocks: that of
/// a tile of 128 x 128 by mma is 1. Smaller tiles read more for each product. Estimates from the bytes that a block
/// reads from shared and from global memory, and from the share of the tensor cores' rate that mma and wgmma reach on
/// large tiles; not measured.
struct TensorTileCosts {
  static constexpr int side = 128, depth = 32;  ///< of the tile that is 1
  double mma_128x128 = 1.0, mma_64x64 = 0.36, mma_16x64 = 0.2;
  double wgmma_128x256 = 1.5, wgmma_128x128 = 0.85;
  bool operator==(const TensorTileCosts&) const = default;
};

/// How a pipeline's warpgroups hand on registers of 32 bits (setmaxnreg), by thread. A multiprocessor has `all` for
/// every fourth part of its warps' lanes: 64 Ki in all, for the 128 threads of a warpgroup.
struct WarpgroupRegisters {
  int all = 512;
  int producer = 24;  ///< that a warpgroup keeps which only copies: the least that setmaxnreg takes
  int most = 240;     ///< that one which multiplies may take
  int step = 8;       ///< that setmaxnreg counts in
  bool operator==(const WarpgroupRegisters&) const = default;
};

/// What a thread's registers have room for in attentions by wgmma; found with ptxas.
struct AttentionRegisters {
  int others = 72;                  ///< of a thread that multiplies, beside sums, scores and saved values
  int most_sums = 128;              ///< of all products that sum over rows or columns
  int sums_beside_whole_tile = 64;  ///< those beside which a whole tile's scores find room
  int most_depth = 256;             ///< of the scores and of the result of rows
  int columns = 64;                 ///< of a tile of them
  int of_three_blocks = 64;  ///< sums and scores of a thread, at most, of whose blocks a multiprocessor runs three
  int of_two_blocks = 96;    ///< the same of two
  bool operator==(const AttentionRegisters&) const = default;
};

/// A GPU as schedules and estimates see it: CUDA's limits, what the chip has, and rates that estimates take. They
/// take every number about the machine from here, so that another GPU is another entry of the table in gpu_info.cpp.
struct GpuInfo {
  std::string_view name = "sm_80";  ///< the exact architecture; it stands for newer ones without an entry too
  std::string_view chips = "A100";

  // Limits.
  int warp_threads = 32;  ///< those of the kernel IR's operations of warps, or there are no kernels for it
  int most_block_threads = 1024;
  std::array<std::int64_t, 3> most_blocks = {INT32_MAX, 65535, 65535};  ///< of a launch, along x, y, z
  std::int64_t static_shared_bytes = 48 << 10;                          ///< that a block has without asking
  WarpgroupRegisters warpgroup_registers = {};                          ///< where there is wgmma
  int most_box_dims = 5;                                                ///< of a tensor that TMA copies boxes of

  VectorRegisters vectors{128, 255};  ///< what a thread loads and stores at once: 16 bytes
  int block_threads = 256;            ///< of a block, unless its schedule wants another number
  int multiprocessors = 108;
  std::int64_t most_shared_bytes = 163 << 10;    ///< of a block, that it may ask for
  std::int64_t reserved_shared_bytes = 1 << 10;  ///< of each block besides
  bool wgmma = false;                            ///< and TMA, mbarriers, registers that warpgroups hand on
  AttentionRegisters attention = {};
  /// Of a block with tiles of sums, from which on ptxas rather spills than let a second one onto its multiprocessor.
  int lone_block_threads = 256;
  GpuProductSizes products = {};
  int most_splits = 512;  ///< of a long reduction, whose results a block of a later kernel combines
  /// Of a scatter_add, that a block sorts in shared memory, 8 bytes each: a power of two. More take longer to sort,
  /// and less to search for those of a row.
  std::int64_t sorted_positions = 2048;

  // Costs.
  int estimated_multiprocessors =
      128;                         ///< alike for all GPUs: how sums are split, and so their bits, follows from it
  double bytes_per_second = 3e12;  ///< of memory
  double launch_seconds = 3e-6;    ///< what another kernel costs
  double load_seconds = 0.6e-6;    ///< from a thread's load of two vectors to the next
  double tensor_flops = 4.5e12;    ///< a second of a multiprocessor, of bf16 by mma
  double fma_flops = 0.18e12;      ///< the same of f32 without tensor cores, by the data sheet
  double memory_work = 32;         ///< an element through memory, in multiply-adds that take as long; not measured
  TensorTileCosts tiles = {};
  /// More bandwidth for its work than a CPU has, and more to start for each chunk.
  RowChunks chunks = {.least_rows = 8192};

  /// The most that products of bf16 reach by mma, a second.
  double product_flops() const { return multiprocessors * tensor_flops; }
  /// The same of f32 without tensor cores.
  double plain_product_flops() const { return multiprocessors * fma_flops; }
  bool operator==(const GpuInfo&) const = default;
};

/// All entries, from the least to the most.
std::span<const GpuInfo> gpu_infos();
/// The entry of that name, such as "sm_90a"; the least one where there is none.
const GpuInfo& gpu_info(std::string_view name);

/// What a multiprocessor multiplies and adds of f32 a clock, by compute capability (80 for 8.0).
int fma_lanes(int capability);

/// Some lines for people, a number a line.
std::string to_string(const GpuInfo& info);

}  // namespace lathe
