#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "ir/kernel/limits.h"
#include "ir/kernel/machine/tile_mma.h"
#include "passes/cpu/gemm/gemm.h"
#include "passes/cpu/gemm/register_tile.h"

/// Parts of choosing a plan that several files share.
namespace lathe::cpu {

using Size = std::optional<std::int64_t>;

inline int floor_to(int size, int step) { return std::max(size / step * step, step); }

inline bool at_most(const Size& size, std::int64_t limit) { return size && *size <= limit; }

/// Bytes of scratch that a task takes at most: a kernel has a little besides.
inline constexpr std::int64_t most_scratch = kernel::most_stack_bytes / 128 * 125;
/// So many 16ths of what kernels may have.
constexpr int scratch(int sixteenths) { return static_cast<int>(kernel::most_stack_bytes / 16 * sixteenths); }

/// Elements of f32 that fill what a thread has of L2.
inline std::int64_t elements_of_l2(const CpuInfo& cpu) { return cpu.l2.share() / size_in_bytes(f32); }
/// The same of all of the last level.
inline std::int64_t elements_of_last_level(const CpuInfo& cpu) { return cpu.last_level.bytes / size_in_bytes(f32); }

/// Depth of the blocks of k: equal shares of a known k, at most `limit`.
inline int depth(const Size& k, int limit, int lanes) {
  if (!k || *k <= 0) return limit;
  const std::int64_t passes = (*k + limit - 1) / limit, share = (*k + passes - 1) / passes;
  return static_cast<int>((share + lanes - 1) / lanes) * lanes;
}

/// The same of a product by tiles: in pairs of k, at most `limit`.
inline int pairs_deep(const Size& k, int limit) {
  return depth(k ? Size((*k + 1) / 2) : Size(), limit, kernel::tile_depth / 2);
}

/// Tasks that are no larger than the product, in whole blocks of sums.
inline void fit_sizes(GemmTile& tile, const GemmQuery& query) {
  const auto clip = [](int& size, const Size& known, int step) {
    if (known) size = static_cast<int>(std::min<std::int64_t>(size, (*known + step - 1) / step * step));
  };
  clip(tile.nc, query.n, tile.n_step());
  clip(tile.mc, query.m, tile.mr);
}

/// The size of parts of at most `most` that are about equal.
inline int equal_share(std::int64_t size, int most) {
  const std::int64_t parts = (size + most - 1) / most;
  return static_cast<int>((size + parts - 1) / parts);
}

/// The tile of sums of tile_mma: two vectors of columns.
inline GemmTile tile_of_mma() {
  return {
      .compute = f32, .lanes = kernel::tile_side, .mr = 2 * kernel::tile_side, .nv = 2, .pairs = true, .tiles = true};
}

/// The least rows, columns and k that make up for what a way costs.
struct LeastSizes {
  std::int64_t m, n, k;
};
/// "its rows are 4, less than 16"; "" where all known sizes are enough.
std::string too_small(const GemmQuery& query, const LeastSizes& least);

/// A plan, or why the machine's way does not suit the product; neither where the machine has no such way for it.
struct TriedPlan {
  std::optional<GemmPlan> plan = {};
  std::string why_not = {};
};
/// The plan of a product of bf16 by tile_mma; none where it is too small or the machine has none.
TriedPlan plan_tiles(const GemmQuery& query);
/// The plan of a product of f32 by split bf16 and tile_mma; none where sizes are not known or too small.
TriedPlan plan_split_bf16(const GemmQuery& query);

/// The blocks where one task does all rows, which are known; nothing is packed and the right operand, read along n,
/// is streamed once. Where more than two row blocks read it, a block of it is to stay in L1.
void fit_rows(GemmTile& tile, const GemmQuery& query);
/// The same for very few rows and a large right operand: whole rows of it, so that a task reads a contiguous run of
/// memory, which takes splits of k as tasks. Sums stay in L1.
void fit_splits(GemmPlan& plan, const GemmQuery& query);
/// The same where the right operand is prefetched, if it is worth while: few of its rows by many columns.
void fit_prefetch(GemmPlan& plan, const GemmQuery& query);
/// The tiles of dot products, for few rows, which are known, and the order in which columns are read.
void fit_dot(GemmPlan& plan, const GemmQuery& query);

}  // namespace lathe::cpu
