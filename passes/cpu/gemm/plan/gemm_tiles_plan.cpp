#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"

namespace lathe::cpu {

namespace {

/// Returns the scratch bytes of a task: its sums, of one row block if k is one block, and the operands that it packs.
std::int64_t scratch_of(const GemmPlan& plan, const GemmQuery& query) {
  const GemmTile& t = plan.tile;
  const bool single = query.k && (*query.k + 1) / 2 <= t.kc;
  const int rows = one_block_of_tiles(query.k) ? t.mc : std::max(t.mc, 2 * rows_with_totals(t));
  std::int64_t bytes = std::int64_t{4} * (single ? t.mr : rows) * t.nc;
  if (plan.lhs == Source::loaded) bytes += std::int64_t{4} * t.mc * t.kc;
  if (plan.lhs == Source::direct) bytes += std::int64_t{4} * t.mr * t.kc;
  if (plan.rhs == Source::loaded) bytes += std::int64_t{4} * t.nc * t.kc;
  return bytes;
}

void fit_block(GemmTile& tile, const ProductBlock& block, const Size& k) {
  tile.kc = pairs_deep(k, block.depth), tile.mc = block.rows, tile.nc = block.columns;
}

/// Few columns of many rows: each task packs the right operand for all its rows.
void fit_narrow(GemmPlan& plan, const GemmQuery& query) {
  const TileBlocks& blocks = query.tuned.tiles;
  const bool rows = plan.rhs == Source::loaded && query.rhs_axis == LaneAxis::row;
  fit_block(plan.tile, rows ? blocks.packs_right_rows : blocks.packs_right, query.k);
}

/// Few rows of many columns: each task packs the left operand, which is read along its rows, for all its columns.
void fit_wide(GemmPlan& plan, const GemmQuery& query) { fit_block(plan.tile, query.tuned.tiles.packs_left, query.k); }

}  // namespace

std::string too_small(const GemmQuery& query, const LeastSizes& least) {
  using Named = std::tuple<std::string_view, Size, std::int64_t>;
  for (const auto& [what, size, enough] :
       {Named{"its rows are", query.m, least.m}, Named{"its columns are", query.n, least.n},
        Named{"its k is", query.k, least.k}})
    if (size && *size < enough) return fmt::format("{} {}, less than {}", what, *size, enough);
  return "";
}

TriedPlan plan_tiles(const GemmQuery& query) {
  constexpr std::int64_t least = kernel::tile_side;  // minimum rows, columns or k; fewer leave too much of a tile
                                                     // empty
  const ProductLimits& limits = query.tuned.limits;
  if (!query.tiles) return {};
  if (std::string why = too_small(query, {least, least, least}); !why.empty()) return {.why_not = std::move(why)};
  GemmPlan plan{.strategy = GemmStrategy::tiles, .tile = tile_of_mma(), .lhs = Source::loaded, .rhs = Source::loaded};
  const bool shared = query.rhs_shared || at_most(query.batch, 1);
  const std::int64_t in_l2 = query.cpu.l2.bytes / size_in_bytes(bf16);  // elements that stay in L2
  if (query.lhs_has_rows && query.k && *query.k % kernel::tile_depth == 0) {
    plan.lhs = Source::direct;
  } else if (shared && !(query.lhs_axis == LaneAxis::row && query.m && *query.m >= limits.packed_left_rows)) {
    plan.lhs = Source::packed;
  }
  if (plan.lhs == Source::loaded) {
    plan.rhs = shared ? Source::packed : Source::loaded;
    fit_wide(plan, query);
  } else {
    const bool many = query.m && *query.m >= limits.packed_right_rows && (!query.k || *query.m * *query.k > in_l2);
    const bool rows = query.rhs_axis == LaneAxis::row && query.n && query.k &&
                      *query.n * *query.k <= limits.packed_right_l2s * in_l2;
    if (shared && (many || rows || query.rhs_kept)) plan.rhs = Source::packed;
    fit_narrow(plan, query);
  }
  const ProductBlock& least_halved = query.tuned.tiles.least_halved;
  GemmTile& t = plan.tile;
  fit_sizes(t, query);
  while (scratch_of(plan, query) > most_scratch) {
    if (t.mc > least_halved.rows)
      t.mc = floor_to(t.mc / 2, t.mr);
    else if (t.nc > least_halved.columns)
      t.nc = floor_to(t.nc / 2, t.n_step());
    else if (t.kc > least_halved.depth)
      t.kc = one_block_of_tiles(query.k) ? floor_to(t.kc / 2, kernel::tile_depth / 2) : pairs_deep(query.k, t.kc / 2);
    else if (t.mc > t.mr)
      t.mc = floor_to(t.mc / 2, t.mr);
    else
      t.nc = floor_to(t.nc / 2, t.n_step());
  }
  return {.plan = plan};
}

}  // namespace lathe::cpu
