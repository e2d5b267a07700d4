#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/kernel/limits.h"
#include "passes/cpu/gemm/gemm.h"
#include "passes/cpu/gemm/register_tile.h"

/// Parts of the plan selection that several files share.
namespace lathe::cpu {

using Size = std::optional<std::int64_t>;

inline int floor_to(int size, int step) { return std::max(size / step * step, step); }

inline bool at_most(const Size& size, std::int64_t limit) { return size && *size <= limit; }

/// Maximum bytes of scratch per task; the kernel needs a little more itself.
inline constexpr std::int64_t most_scratch = kernel::most_stack_bytes / 128 * 125;
/// Returns this many sixteenths of the scratch limit of kernels.
constexpr int scratch(int sixteenths) { return static_cast<int>(kernel::most_stack_bytes / 16 * sixteenths); }

/// Returns the number of f32 elements that fill a thread's share of L2.
inline std::int64_t elements_of_l2(const CpuInfo& cpu) { return cpu.l2.share() / size_in_bytes(f32); }
/// Returns the number of f32 elements that fill the whole last-level cache.
inline std::int64_t elements_of_last_level(const CpuInfo& cpu) { return cpu.last_level.bytes / size_in_bytes(f32); }

/// Returns the depth of the blocks of k: equal shares of a known k, at most `limit`.
inline int depth(const Size& k, int limit, int lanes) {
  if (!k || *k <= 0) return limit;
  const std::int64_t passes = (*k + limit - 1) / limit, share = (*k + passes - 1) / passes;
  return static_cast<int>((share + lanes - 1) / lanes) * lanes;
}

/// Maximum additions to one accumulator of f32. GemmTile::block explains it.
inline constexpr int most_additions = 512;

/// Lets accumulators of one or two rows in f32 add fewer products, so that the relative error of equal terms is at
/// most 1e-6. Such products wait for memory, and there are registers for a second accumulator per dot product.
inline void shorten_sums(GemmTile& tile, bool dots) {
  constexpr int additions = 32, plain_additions = 16;
  if (tile.block == 0) return;
  tile.plain_blocks = plain_additions;
  (dots ? tile.part : tile.block) = additions;
}
inline constexpr int rows_of_short_sums = 2;

/// Returns that depth. If k has several blocks of sums of `block` steps (0: one block), returns the nearest depth
/// that divides a block or is a multiple of it, which may be more than the limit.
inline int depth_in_blocks(const Size& k, int limit, int lanes, int block) {
  const int equal = depth(k, limit, lanes);
  if (block == 0 || at_most(k, std::max(block, equal))) return equal;
  return 2 * equal > block ? floor_to(equal, block) : static_cast<int>(std::bit_floor(static_cast<unsigned>(equal)));
}
inline int depth_in_blocks(const Size& k, int limit, const GemmTile& tile) {
  return depth_in_blocks(k, limit, tile.lanes, tile.block);
}

/// Pairs of k that an accumulator of tile_mma adds: 288 roundings, or six times as many for split bf16. All depths of
/// its plans divide this number.
inline constexpr int tiles_block = 4608;

/// Whether sums of tile_mma have one block.
inline bool one_block_of_tiles(const Size& k) { return at_most(k, 2 * tiles_block); }

/// Returns the depth for tiles: in pairs of k, at most `limit`. If sums have several blocks, it divides a block.
inline int pairs_deep(const Size& k, int limit) {
  constexpr int unit = kernel::tile_depth / 2;
  if (one_block_of_tiles(k)) return depth((*k + 1) / 2, limit, unit);
  int deep = floor_to(limit, unit);
  while (tiles_block % deep != 0) deep -= unit;
  return deep;
}

/// Returns the rows of a task if its sums have several blocks: half as many, because each needs a total too.
inline int rows_with_totals(const GemmTile& tile) { return floor_to(tile.mc / 2, tile.mr); }

/// Limits a task to the size of the matmul, in whole blocks of sums.
inline void fit_sizes(GemmTile& tile, const GemmQuery& query) {
  const auto clip = [](int& size, const Size& known, int step) {
    if (known) size = static_cast<int>(std::min<std::int64_t>(size, (*known + step - 1) / step * step));
  };
  clip(tile.nc, query.n, tile.n_step());
  clip(tile.mc, query.m, tile.mr);
}

/// Returns the size of about equal parts of at most `most`.
inline int equal_share(std::int64_t size, int most) {
  const std::int64_t parts = (size + most - 1) / most;
  return static_cast<int>((size + parts - 1) / parts);
}

/// Returns the tile of sums of tile_mma: two vectors of columns.
inline GemmTile tile_of_mma() {
  return {.compute = f32,
          .lanes = kernel::tile_side,
          .mr = 2 * kernel::tile_side,
          .nv = 2,
          .operands = GemmTile::Operands::tiles,
          .block = tiles_block};
}

/// Minimum rows, columns and k for a path to pay off.
struct LeastSizes {
  std::int64_t m, n, k;
};
/// Returns "its rows are 4, less than 16", or "" if all known sizes are large enough.
std::string too_small(const GemmQuery& query, const LeastSizes& least);

/// A plan, or the reason why the path does not suit the matmul. Neither is set if the CPU has no such path for it.
struct TriedPlan {
  std::optional<GemmPlan> plan = {};
  std::string why_not = {};
};
/// Plans a bf16 matmul by tile_mma. Returns no plan if it is too small or the CPU has no tile_mma.
TriedPlan plan_tiles(const GemmQuery& query);
/// Plans an f32 matmul by split bf16 and tile_mma. Returns no plan if sizes are unknown or too small.
TriedPlan plan_split_bf16(const GemmQuery& query);

/// Sets the blocks for tasks that process all rows, whose number is known. Nothing is packed, and the right operand,
/// read along n, is streamed once. If more than two row blocks read it, a block of it should stay in L1.
void fit_rows(GemmTile& tile, const GemmQuery& query);
/// Sets the blocks for a GEMV with a large right operand. A task reads whole rows of it, a contiguous run of
/// memory, so the tasks are splits of k. Sums stay in L1.
void fit_splits(GemmPlan& plan, const GemmQuery& query);
/// Sets the blocks for a prefetched right operand, if prefetching pays off: few of its rows by many columns.
void fit_prefetch(GemmPlan& plan, const GemmQuery& query);
/// Sets the tiles of dot products for few rows, whose number is known, and the order in which columns are read.
void fit_dot(GemmPlan& plan, const GemmQuery& query);

}  // namespace lathe::cpu
