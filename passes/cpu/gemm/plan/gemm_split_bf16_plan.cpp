#include <fmt/core.h>

#include <algorithm>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"
#include "passes/cpu/gemm/split_bf16_sums.h"

namespace lathe::cpu {

namespace {

constexpr int bytes_of_pair = 2 * kernel::bf16_terms * 2;
/// Returns the maximum rows or k of an operand that is packed whole; its copy is half as large again.
std::int64_t many(const GemmQuery& query) { return query.tuned.limits.most_packed_split; }

/// Many rows: a task packs some of them for all its columns, which are few. Blocks of the right operand come from L3.
void fit_many_rows(GemmTile& t, const GemmQuery& query) {
  const ProductBlock& block = query.tuned.tiles.split_left;
  t.mc = block.rows;
  t.nc = block.columns;
  t.kc = pairs_deep(query.k, block.depth);
}

/// Both operands are packed beforehand. A row block of the left one is multiplied by a whole block of the right one,
/// which occupies a third of L2, because other virtual machines may use the rest. If no sums are kept between blocks
/// of k, a task may have all rows, provided that the columns are enough for many tasks.
void fit_packed(GemmTile& t, const GemmQuery& query) {
  const TileBlocks& blocks = query.tuned.tiles;
  const ProductLimits& limits = query.tuned.limits;
  const bool single = at_most(query.k, limits.one_block);
  const ProductBlock& block = single ? blocks.split_one_block : blocks.split_packed;
  t.kc = pairs_deep(query.k, block.depth);
  // Rows that only a run knows may be few, and then the columns give all tasks.
  const bool few_tasks = query.rhs_kept && !query.m && at_most(query.n, limits.split_columns);
  t.nc = few_tasks ? block.columns / 2 : block.columns;
  t.mc = single && at_most(query.n, limits.split_columns) ? blocks.split_few_columns_rows : block.rows;
}

/// Each task packs the right operand, usually weights, for all its rows, which stay in L2.
void fit_packed_left(GemmTile& t, const GemmQuery& query) {
  const TileBlocks& blocks = query.tuned.tiles;
  const bool single = at_most(query.k, query.tuned.limits.one_block);
  t.kc = pairs_deep(query.k, single ? blocks.split_right_depth : blocks.split_right.depth);
  // Most of the scratch holds the packed operand; the rest holds one row block's sums and the scratch of
  // SplitBf16Sums.
  const int packed = bytes_of_pair * t.kc, sums = static_cast<int>(size_in_bytes(t.compute)) * t.mr;
  constexpr std::int64_t parts_for_packed = 25, parts = 32;
  const int most = std::min(static_cast<int>(kernel::most_stack_bytes * parts_for_packed / parts) / packed,
                            static_cast<int>(most_scratch - SplitBf16Sums::scratch_bytes) / (packed + sums));
  t.nc = single ? floor_to(most, t.n_step()) : blocks.split_right.columns;
  t.mc = single ? blocks.split_right_rows : blocks.split_right.rows;
}

/// Whether tasks should pack the right operand themselves: for a short k, if its rows are contiguous along k or if
/// few rows are known to use it.
bool packs_in_tasks(const GemmQuery& query) {
  const ProductLimits& limits = query.tuned.limits;
  return at_most(query.k, limits.one_block) &&
         (query.rhs_axis == LaneAxis::k || at_most(query.m, limits.split_task_rows));
}

/// A long k: packed operands of all of it would be too large, so k is processed in panels.
TriedPlan plan_panels(GemmPlan plan, GemmQuery query) {
  if (!at_most(query.n, many(query)))
    return {.why_not = fmt::format("its k is {}, and its {} columns are too many to be packed in panels of it",
                                   *query.k, *query.n)};
  constexpr std::int64_t many_panels = 64;  // more would add up many roundings
  const auto most = static_cast<int>(std::max(query.tuned.limits.most_panel, *query.k / many_panels));
  plan.panel = floor_to(equal_share(*query.k, most) + kernel::tile_depth - 1, kernel::tile_depth);
  query.k = plan.panel;
  plan.lhs = plan.rhs = Source::packed;
  fit_packed(plan.tile, query);
  fit_sizes(plan.tile, query);
  return {.plan = plan};
}

/// One right operand per batch: tasks pack blocks of both operands. With a short k, an element is multiplied by many
/// of the other operand at a time; with few columns, a task has all of them. With very few columns, fma needs no copy
/// of the left operand. It is faster if that is read along a long k, or along its rows with a short k.
TriedPlan plan_batched(GemmPlan plan, const GemmQuery& query) {
  const TileBlocks& blocks = query.tuned.tiles;
  const ProductLimits& limits = query.tuned.limits;
  const int side = blocks.short_side, few = blocks.split_batched_side;
  if (!query.m || !query.k) return {.why_not = "its right operand is of a batch, and its rows or k are not known"};
  if (*query.m < side)
    return {.why_not =
                fmt::format("its right operand is of a batch, and its {} rows are less than {}", *query.m, side)};
  GemmTile& t = plan.tile;
  plan.lhs = plan.rhs = Source::loaded;
  t.kc = pairs_deep(query.k, blocks.split_batched_depth);
  t.mc = few;
  t.nc = few;
  const bool along_k = query.lhs_axis == LaneAxis::k;
  if (*query.n >= side && *query.k <= 2 * t.kc)
    t.mc = t.nc = t.kc <= blocks.split_batched_depth / 2 ? side : few;
  else if (*query.n > few ||
           (*query.n <= limits.split_columns_depth && along_k == (*query.k > limits.split_long_depth)))
    return {.why_not = fmt::format(
                "its right operand is batched, and {} columns with a k of {} are too small to pay for splitting",
                *query.n, *query.k)};
  // Leaves scratch for the sums between blocks of k.
  if (*query.k > 2 * t.kc) t.kc = pairs_deep(query.k, blocks.waiting_depth);
  fit_sizes(t, query);
  return {.plan = plan};
}

/// Returns the percentage of the tiles' multiplications that is not padding, for the known sizes.
double percent_filled(const GemmQuery& query) {
  constexpr double all = 100;
  double share = all;
  for (const Size& size : {query.m, query.n, query.k}) {
    if (!size || *size <= 0) continue;
    const std::int64_t tiles = (*size + kernel::tile_depth - 1) / kernel::tile_depth;
    share *= static_cast<double>(*size) / static_cast<double>(tiles * kernel::tile_depth);
  }
  return share;
}

}  // namespace

TriedPlan plan_split_bf16(const GemmQuery& query) {
  const ProductLimits& limits = query.tuned.limits;
  if (!query.split_bf16) return {};
  if (!query.n) return {.why_not = "its columns are not known"};
  const std::int64_t least = limits.split_columns_depth;
  if (std::string why = too_small(query, {limits.split_rows, least, least}); !why.empty())
    return {.why_not = std::move(why)};
  if (const double percent = percent_filled(query); percent < static_cast<double>(limits.split_percent))
    return {.why_not =
                fmt::format("its sizes fill {:.0f}% of whole tiles, less than {}%", percent, limits.split_percent)};
  GemmPlan plan{.strategy = GemmStrategy::tiles, .tile = tile_of_mma()};
  plan.tile.operands = GemmTile::Operands::split_tiles;
  if (!query.m) plan.least_rows = query.rhs_fixed ? limits.split_fixed_rows : limits.split_unknown_rows;
  if (!query.rhs_shared && !at_most(query.batch, 1)) return plan_batched(plan, query);
  const bool small_right = *query.n <= many(query) && (!query.k || *query.k <= many(query));
  if (query.m && *query.m > many(query)) {
    if (!small_right)
      return {.why_not = fmt::format("neither its {} rows nor its right operand are few enough to be packed whole",
                                     *query.m)};
    plan.lhs = Source::loaded, plan.rhs = Source::packed;
    fit_many_rows(plan.tile, query);
  } else {
    if (query.k && *query.k > many(query)) return plan_panels(plan, query);
    plan.lhs = Source::packed,
    plan.rhs = small_right && (query.rhs_kept || !packs_in_tasks(query)) ? Source::packed : Source::loaded;
    plan.rhs == Source::packed ? fit_packed(plan.tile, query) : fit_packed_left(plan.tile, query);
  }
  fit_sizes(plan.tile, query);
  return {.plan = plan};
}

}  // namespace lathe::cpu
