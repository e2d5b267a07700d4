#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/hardware/attention_blocks.h"
#include "ir/hardware/product_sizes.h"
#include "ir/hardware/row_chunks.h"
#include "ir/hardware/task_sizes.h"
#include "ir/hardware/vector_loops.h"
#include "ir/hardware/vector_registers.h"

namespace lathe {

struct CpuCache {
  std::int64_t bytes = 0;
  int shared_by = 1;  ///< threads that share the cache

  constexpr std::int64_t share() const { return bytes / shared_by; }
  bool operator==(const CpuCache&) const = default;
};

/// Attention costs per score (one row and one column), in multiply-adds at full speed. For tile_mma, the unit is a
/// hundredth of the cost of an unfused score without its matmuls. Fitted to measurements of bench_attention.
struct AttentionRates {
  double fused_scores, fused_sums;  ///< fused matmuls: per element of the depth of q and k, and of v
  double plain_products;            ///< unfused matmuls, per element of either depth
  double fused_points;              ///< fused: elementwise work per score
  double plain_points, far_points;  ///< unfused: elementwise work through memory, within and beyond the caches
  double row;                       ///< fused: packing, loading and storing, per row and element of its depth
  double diagonal;                  ///< columns that a causal row computes beyond half of them
  bool operator==(const AttentionRates&) const = default;
};
struct AttentionCosts {
  double fused_factor = 1.1;  ///< scales the cost of fused matmuls
  AttentionRates forward{1, 1, 1, 124, 193, 198, 9, 12};
  AttentionRates forward_bf16 = forward;  ///< fused with fma, although unfused bf16 matmuls may use tiles
  AttentionRates training{4, 3, 3, 148, 190, 275, 30, 20};
  AttentionRates forward_by_tiles = forward, training_by_tiles = training;  ///< bf16
  bool operator==(const AttentionCosts&) const = default;
};

/// Hardware facts of a CPU for schedules and estimates: the minimum that all CPUs of that name provide. Schedules and
/// estimates take every hardware number from here, so that a new CPU only needs an entry in cpu_info.cpp, and code
/// for a name does not depend on where it is compiled. The order of sums depends on these numbers, never on the CPU
/// that runs the code.
struct CpuInfo {
  std::string_view name = "x86-64-v4";
  std::string_view basis = {};     ///< the entry whose instructions it includes
  std::string_view features = {};  ///< additional instructions, as LLVM features: "+avx2,+fma"
  bool one_model = false;          ///< does not represent other CPUs with the same instructions

  VectorRegisters vectors{512, 32};
  bool dot_pairs = false;   ///< has a bf16 pair dot product that is faster than f32 fma, used for bf16 matmuls
  bool tiles = false;       ///< has tile_mma, used for matmuls of bf16, and of f32 as split bf16
  int tile_rows = 32;       ///< rows and columns of a tile_mma accumulator block
  int split_rows = 128;     ///< minimum rows of an f32 attention for which split bf16 by tile_mma pays off
  int split_columns = 160;  ///< minimum columns that each of these rows must attend to

  int cores = 8;  ///< assumed cores when dividing work, independent of the actual number
  /// Per-core rate for predictions of whole steps: two multiply-add units at 2.5 GHz. Not measured.
  double cycles_per_second = 2.5e9;
  int lane_flops = 4;  ///< f32 operations per cycle and lane
  CpuCache l1{32 << 10, 1}, l2{1 << 20, 1}, last_level{32 << 20, 8};
  /// The cache behind L2 is reached over a mesh or similar. Cache lines must be prefetched, because reading each when
  /// it is multiplied is too slow.
  bool slow_last_level = false;
  std::int64_t bytes_in_flight = 12 << 10;  ///< bytes of outstanding loads per core needed to saturate memory

  double memory_work = 32;  ///< cost of moving an element through memory, in multiply-adds; rough
  int score_work = 16;      ///< elementwise cost of an attention score, in multiply-adds; rough

  ProductSizes products = {};
  RowChunks chunks = {};
  AttentionCosts attention = {};
  AttentionBlocks attention_blocks = {};
  VectorLoops loops = {};
  TaskSizes tasks = {};

  /// Peak f32 matmul rate of all cores, in operations per second.
  double product_flops() const { return cores * cycles_per_second * lane_flops * vectors.lanes(f32); }
  bool operator==(const CpuInfo&) const = default;
};

/// Returns all entries, smallest first; levels precede models.
std::span<const CpuInfo> cpu_infos();
/// Returns the entry used if no target is named; it represents no particular CPU.
const CpuInfo& unnamed_cpu();
/// Returns the entry of that name, or null.
const CpuInfo* find_cpu_info(std::string_view name);
/// Returns the features of an entry and of all entries it is based on: "+cx16,+popcnt,...".
std::string cpu_features(const CpuInfo& info);

/// Returns the entry for a CPU of that name and features (LLVM's) with vectors of `vector_bits` bits. Without an
/// entry of that name, returns the largest generic entry with such instructions. Clears what the features do not
/// include. Throws InternalError unless vectors are 128, 256 or 512 bits wide.
CpuInfo cpu_info_for(std::string_view name, std::string_view features, int vector_bits);

/// Returns human-readable lines, one number per line.
std::string to_string(const CpuInfo& info);

}  // namespace lathe
