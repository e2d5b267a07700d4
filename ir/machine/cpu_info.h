#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/machine/attention_blocks.h"
#include "ir/machine/product_sizes.h"
#include "ir/machine/row_chunks.h"
#include "ir/machine/task_sizes.h"
#include "ir/machine/vector_loops.h"
#include "ir/machine/vector_registers.h"

namespace lathe {

struct CpuCache {
  std::int64_t bytes = 0;
  int shared_by = 1;  ///< threads that run at the same time

  constexpr std::int64_t share() const { return bytes / shared_by; }
  bool operator==(const CpuCache&) const = default;
};

/// What attentions cost, for one score (a row and a column) in multiply-adds at full speed; by tiles in hundredths of
/// what a plain score costs beside its products. Fitted to measurements of bench_attention.
struct AttentionRates {
  double fused_scores, fused_sums;  ///< products of a fused attention as deep as q and k, as v
  double plain_products;            ///< of each depth
  double fused_points;              ///< what becomes of a score
  double plain_points, far_points;  ///< the same through memory, within the caches and beyond
  double row;                       ///< of a fused row, for each element of its depth: packing, loading, storing
  double diagonal;                  ///< columns beyond half of them that causal rows are computed with
  bool operator==(const AttentionRates&) const = default;
};
struct AttentionCosts {
  double fused_factor = 1.1;  ///< of the time of fused products
  AttentionRates forward{1, 1, 1, 124, 193, 198, 9, 12};
  AttentionRates forward_bf16 = forward;  ///< fused by fma where plain products of bf16 may go by tiles
  AttentionRates training{4, 3, 3, 148, 190, 275, 30, 20};
  AttentionRates forward_by_tiles = forward, training_by_tiles = training;  ///< of bf16
  bool operator==(const AttentionCosts&) const = default;
};

/// A CPU as schedules and estimates see it: the least that every CPU of the name has. They take every number about
/// the machine from here, so that another CPU is another entry of the table in cpu_info.cpp, and code for a name is
/// the same wherever it is made. Where sums are added in another order, they follow these numbers, never the CPU that
/// runs the code.
struct CpuInfo {
  std::string_view name = "x86-64-v4";
  std::string_view basis = {};     ///< the entry whose instructions it has too
  std::string_view features = {};  ///< instructions that it has more than that, as LLVM spells them: "+avx2,+fma"
  bool one_model = false;          ///< it stands for no other CPU that has its instructions

  VectorRegisters vectors{512, 32};
  bool dot_pairs = false;   ///< has an instruction for it that is faster than f32's, so that products of bf16 use it
  bool tiles = false;       ///< has tile_mma, so that products of bf16, and of f32 as split bf16, use it
  int tile_rows = 32;       ///< rows and columns of a block of sums of tile_mma
  int split_rows = 128;     ///< rows of an f32 attention from which on splitting for tile_mma pays
  int split_columns = 160;  ///< columns that each of them looks at

  int cores = 8;  ///< that work is shared out among, however many there are
  /// What predictions of whole steps take for a core: two units of multiply-adds at 2.5 GHz. Not measured.
  double cycles_per_second = 2.5e9;
  int lane_flops = 4;  ///< of f32 a cycle and lane
  CpuCache l1{32 << 10, 1}, l2{1 << 20, 1}, last_level{32 << 20, 8};
  /// Cache lines that L2 does not keep come over a mesh or the like: too slowly to read them one by one while they
  /// are multiplied.
  bool slow_last_level = false;
  std::int64_t bytes_in_flight = 12 << 10;  ///< of loads that a core has to have under way to keep memory busy

  double memory_work = 32;  ///< an element through memory, in multiply-adds that take as long; rough
  int score_work = 16;      ///< what becomes of a score of an attention, in multiply-adds; rough

  ProductSizes products = {};
  RowChunks chunks = {};
  AttentionCosts attention = {};
  AttentionBlocks attention_blocks = {};
  VectorLoops loops = {};
  TaskSizes tasks = {};

  /// The most that products of f32 reach on all cores, a second.
  double product_flops() const { return cores * cycles_per_second * lane_flops * vectors.lanes(f32); }
  bool operator==(const CpuInfo&) const = default;
};

/// All entries, from the least to the most; those of levels before those of models.
std::span<const CpuInfo> cpu_infos();
/// The entry that graphs are rewritten for where no target is named, and that stands for none in particular.
const CpuInfo& unnamed_cpu();
/// The entry of that name; null if there is none.
const CpuInfo* find_cpu_info(std::string_view name);
/// The instructions of an entry and of all that it builds on: "+cx16,+popcnt,...".
std::string cpu_features(const CpuInfo& info);

/// The entry for a CPU of that name and features (LLVM's) that computes with vectors of so many bits: that of its
/// name, else the last one that stands for all CPUs with such instructions. What the features leave out the result
/// leaves out too. InternalError for vectors that are neither 128, 256 nor 512 bits wide.
CpuInfo cpu_info_for(std::string_view name, std::string_view features, int vector_bits);

/// Some lines for people, a number a line.
std::string to_string(const CpuInfo& info);

}  // namespace lathe
