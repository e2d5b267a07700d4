#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/hardware/vector_registers.h"

namespace lathe {

struct CpuCache {
  std::int64_t bytes = 0;
  int shared_by = 1;  ///< threads that share the cache

  constexpr std::int64_t share() const { return bytes / shared_by; }
  bool operator==(const CpuCache&) const = default;
};

/// Hardware facts of a CPU for schedules and estimates: the minimum that all CPUs of that name provide, so that code
/// for a name does not depend on where it is compiled. The order of sums depends on these numbers, never on the CPU
/// that runs the code. Tuned sizes are not facts: the defaults are next to the schedules that use them, and
/// passes/cpu/cpu_sizes.cpp has those measured on particular CPUs.
struct CpuInfo {
  std::string_view name = "x86-64-v4";
  std::string_view basis = {};     ///< the entry whose instructions it includes
  std::string_view features = {};  ///< additional instructions, as LLVM features: "+avx2,+fma"
  bool one_model = false;          ///< does not represent other CPUs with the same instructions

  VectorRegisters vectors{512, 32};
  bool dot_pairs = false;  ///< has a bf16 pair dot product that is faster than f32 fma, used for bf16 matmuls
  bool tiles = false;      ///< has tile_mma, used for matmuls of bf16, and of f32 as split bf16

  int cores = 8;  ///< assumed cores when dividing work, independent of the actual number
  /// Per-core rate for predictions of whole steps: two multiply-add units at 2.5 GHz. Not measured.
  double cycles_per_second = 2.5e9;
  int lane_flops = 4;  ///< f32 operations per cycle and lane
  CpuCache l1{32 << 10, 1}, l2{1 << 20, 1}, last_level{32 << 20, 8};
  /// The cache behind L2 is reached over a mesh or similar. Cache lines must be prefetched, because reading each when
  /// it is multiplied is too slow.
  bool slow_last_level = false;
  std::int64_t bytes_in_flight = 12 << 10;  ///< bytes of outstanding loads per core needed to saturate memory

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
