#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "ir/support/error.h"
#include "passes/cpu/gemm/blocked/gemm_remainder.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"

namespace lathe::cpu {

namespace {

/// Sets the blocks of a task that packs its parts of both operands. The left one is packed again for every block of
/// columns, so these are wide.
void fit_loaded(GemmTile& tile, const GemmQuery& query) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  const ProductBlock& block = query.tuned.fma.packs_both;
  tile.kc = depth_in_blocks(query.k, block.depth, tile);
  tile.nc = floor_to(block.columns * 4 / bytes, tile.n_step());
  tile.mc = floor_to(block.rows, tile.mr);
}

/// Sets the blocks of a task that packs its part of the left operand; the right one is packed already.
void fit_loaded_left(GemmTile& tile, const GemmQuery& query) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  const ProductBlock& block = query.tuned.fma.packs_left;
  tile.kc = depth_in_blocks(query.k, block.depth * 4 / bytes, tile);
  tile.nc = floor_to(block.columns * 4 / bytes, tile.n_step());
  tile.mc = floor_to(block.rows, tile.mr);
}

/// Whether an f32 right operand exceeds all caches.
bool large_right(const GemmQuery& query) {
  return query.n && query.k && *query.n * *query.k >= elements_of_last_level(query.cpu);
}

/// Whether the epilogue takes most of the time, such as an optimizer's update with the gradient of a few rows.
bool mostly_epilogue(const GemmQuery& query) {
  return !query.epilogue_small && at_most(query.k, query.tuned.limits.epilogue_depth);
}

/// Sets the blocks of a task that packs its part of the right operand, once for all of its rows. If a known k is one
/// block, sums are needed for one row block only, so that a task may have many rows. Blocks are deep and one register
/// tile wide if there are enough rows to pay for a packed row block that comes from L2. If the right operand is, or
/// may be, read along n from memory, blocks are wide instead, to read longer runs.
void fit_loaded_right(GemmTile& tile, const GemmQuery& query) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  const bool rows = query.lhs_axis == LaneAxis::row;
  const bool small = query.n && query.k && !large_right(query);
  const FmaBlocks& blocks = query.tuned.fma;
  const bool deep = (rows || query.rhs_axis == LaneAxis::k || small) && !at_most(query.m, query.tuned.limits.small_m);
  const int row_block = scratch(9) / bytes / tile.n_step() / tile.lanes * tile.lanes;  // limits the depth
  const int deepest = !deep ? blocks.small_m_depth : rows ? blocks.beside_rows_depth : blocks.packs_right_depth;
  tile.kc = depth_in_blocks(query.k, std::min(deepest * 4 / bytes, row_block), tile);
  const bool single = at_most(query.k, tile.kc), narrow = 2 * tile.n_step() * tile.kc * bytes <= scratch(6);
  tile.nc = (!single && !deep && narrow ? 2 : 1) * tile.n_step();
  constexpr int of_sums_and_right = 15;  // sixteenths of scratch
  const int sums = (scratch(of_sums_and_right) / bytes - tile.nc * tile.kc) / tile.nc;
  tile.mc = floor_to(
      single ? blocks.packs_right_rows : std::min(sums, deep ? blocks.packs_right_rows : blocks.waiting_rows),
      tile.mr);
  // The epilogue then accesses long runs of memory, which is all that takes time.
  if (single && mostly_epilogue(query))
    tile.nc = floor_to(scratch(of_sums_and_right) / bytes / (tile.kc + 2 * tile.mr), tile.n_step());
}

/// Sets the blocks of a task whose right operand is packed already: many rows, one column block and deep blocks. If k
/// is one block, no sums are kept between blocks. If the left operand is read along its rows, each step of k touches
/// another cache line, and blocks are less deep.
void fit_packed_right(GemmTile& tile, const GemmQuery& query) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  constexpr int of_sums = 12;  // sixteenths of scratch
  const FmaBlocks& blocks = query.tuned.fma;
  const int deepest = query.lhs_axis == LaneAxis::k ? blocks.packed_depth : blocks.packed_beside_rows_depth;
  tile.kc = depth_in_blocks(query.k, deepest * 4 / bytes, tile);
  tile.nc = tile.n_step();
  tile.mc = floor_to(std::min(blocks.packed_rows, scratch(of_sums) / bytes / tile.nc), tile.mr);
}

/// Few columns: makes one register tile as wide as they are, so that rows are read once and no tile is mostly empty.
void fit_columns(GemmTile& tile, const GemmQuery& query) {
  const int most = query.cpu.vectors.count / 8 + 1;
  if (!query.n || *query.n <= 0 || *query.n > most * tile.lanes || !query.lhs_loadable) return;
  tile.nv = static_cast<int>((*query.n + tile.lanes - 1) / tile.lanes);
  tile.mr = std::min(accumulators(query.cpu.vectors) / tile.nv, query.tuned.fma.most_column_rows);
}

/// Whether there is one right operand for all rows.
bool reused(const GemmQuery& query) { return query.rhs_shared || at_most(query.batch, 1); }

/// The columns that share a left operand, of one batch if their number is unknown; nothing for an unknown n.
std::optional<std::int64_t> columns_of_left(const GemmQuery& query) {
  return query.n && query.lhs_shared && query.batch ? std::optional(*query.batch * *query.n) : query.n;
}

/// Whether there is one left operand for all columns.
bool left_reused(const GemmQuery& query) { return query.lhs_shared || at_most(query.batch, 1); }

/// Returns whether a packed copy of the right operand may pay off. A copy that exceeds all caches is written to
/// memory and read back, so each task should pack its own part, unless enough rows share the copy to make this
/// traffic negligible.
bool may_pack_right(const GemmQuery& query) {
  const bool many = query.m && *query.m >= query.tuned.limits.packed_rows && query.n && query.k &&
                    *query.n * *query.k <= query.cpu.last_level.bytes;
  return reused(query) && (many || !large_right(query));
}

/// Returns whether the right operand is read in place from a cache because there are too few rows to amortize
/// packing. The right operand of a weight gradient was computed just before; weights come from memory.
bool stays_cached(const GemmQuery& query) {
  const ProductLimits& limits = query.tuned.limits;
  const bool fresh = query.lhs_axis == LaneAxis::row && at_most(query.m, limits.small_m);
  const std::int64_t l2 = elements_of_l2(query.cpu);
  return at_most(query.m, limits.cached_rows) && query.n && query.k &&
         *query.n * *query.k <= (fresh ? 4 * l2 : l2 / 4);
}

/// Whether a left operand that is not plain should be computed beforehand into a packed copy. That pays off if many
/// blocks of columns would compute it again, unless the copy is so large that it goes through memory. Tasks can pack
/// an operand that is read along its rows in whole cache lines as well.
bool may_pack_left(const GemmQuery& query) {
  const ProductLimits& limits = query.tuned.limits;
  const std::int64_t large = limits.most_packed_left;
  const bool small = (!query.m || *query.m <= large) && (!query.k || *query.k <= large);
  const std::optional<std::int64_t> columns = columns_of_left(query);
  return left_reused(query) && query.lhs_axis == LaneAxis::k && small && columns &&
         *columns > limits.computed_columns;
}

/// Whether tasks should pack a plain left operand, in whole cache lines, instead of reading it in place. If it is
/// read along its rows, each step of k touches another cache line. With many rows, no cache keeps these lines for the
/// next rows and columns.
bool scattered_left(const GemmQuery& query) {
  return query.lhs_axis == LaneAxis::row && query.m && *query.m >= query.tuned.limits.scattered_rows &&
         may_pack_right(query);
}

/// Whether a plain left operand that is read along its rows, another cache line at each step of k, should be copied
/// first. That pays off if the last-level cache is slow and there are many steps and columns.
bool distant_left(const GemmQuery& query) {
  if (!query.cpu.slow_last_level || query.lhs_axis != LaneAxis::row || !at_most(query.batch, 1)) return false;
  const ProductLimits& limits = query.tuned.limits;
  return query.m && *query.m > limits.small_m && !at_most(query.n, limits.distant_columns) &&
         !at_most(query.k, limits.distant_columns);
}

/// Whether a plain left operand whose elements are adjacent in runs shorter than a vector, such as the transposed
/// kernel of a convolution, should be copied first. Each block of columns would access its cache lines again.
bool left_in_short_runs(const GemmQuery& query) {
  const ProductLimits& limits = query.tuned.limits;
  return query.lhs_axis == LaneAxis::k && query.lhs_run < query.cpu.vectors.lanes(query.compute) &&
         left_reused(query) && query.m && *query.m >= limits.scattered_least && query.k &&
         *query.k >= limits.scattered_least && !at_most(columns_of_left(query), limits.scattered_columns);
}

/// Returns the scratch bytes of a task: sums between blocks of k, or of two row blocks, and the operands that it
/// packs.
std::int64_t scratch_bytes(const GemmPlan& plan, const GemmQuery& query) {
  const GemmTile& tile = plan.tile;
  const bool single = at_most(query.k, tile.kc), parts = !single && !tile.one_block(query.k) && tile.kc < tile.block;
  const int numbers_per_sum = 1 + (parts ? 1 : 0) + (tile.may_compensate(query.k) ? 1 : 0);
  const std::int64_t rows = std::int64_t{std::max(2 * tile.mr, single ? 0 : tile.mc)} * numbers_per_sum;
  const std::int64_t left = tile.lanes % tile.mr == 0 ? tile.lanes : tile.mr;
  std::int64_t elements = rows * tile.nc;
  if (plan.lhs == Source::loaded) elements += left * tile.kc + tile.lanes;
  if (plan.rhs == Source::loaded) elements += std::int64_t{tile.nc} * tile.kc;
  elements += RemainderColumns::scratch(plan, query.lhs_axis, query.k.value_or(0));
  return elements * static_cast<std::int64_t>(size_in_bytes(tile.compute));
}

/// Shrinks blocks until a task's scratch fits: rows first, then columns, then the depth. Passes end where blocks of
/// sums do.
void fit_scratch(GemmPlan& plan, const GemmQuery& query) {
  GemmTile& tile = plan.tile;
  if (plan.strategy != GemmStrategy::blocked) return;
  const Size k = query.k ? Size(*query.k / plan.splits) : Size();
  const auto whole_passes = [&](int kc) {
    return tile.one_block(k) || at_most(k, kc) ? kc : depth_in_blocks({}, kc, tile);
  };
  tile.kc = whole_passes(tile.kc);
  while (scratch_bytes(plan, query) > most_scratch) {
    if (tile.mc > 8 * tile.mr) {
      tile.mc = floor_to(tile.mc / 2, tile.mr);
    } else if (tile.nc > tile.n_step()) {
      tile.nc = floor_to(tile.nc / 2, tile.n_step());
    } else {
      tile.kc = whole_passes(floor_to(tile.kc / 2, tile.lanes));
    }
  }
}

/// Returns how many of the last columns should be summed separately: few, next to few whole vectors, because a vector
/// of them costs as much as a whole one. Dot products add up lanes and copy their columns, which pays off if they are
/// twice as fast.
int remainder_columns(const GemmQuery& query) {
  const int lanes = query.cpu.vectors.lanes(query.compute);
  const bool dots = query.lhs_axis == LaneAxis::k;
  const bool many = query.m && *query.m >= query.tuned.limits.small_m;  // rows to copy the columns for
  const std::int64_t most_copied = many ? 16384 : 4096;                 // in scratch, which the kernel IR limits
  const std::int64_t most_vectors = query.tuned.limits.remainder_vectors;
  if (!query.n || *query.n < lanes || *query.n >= (most_vectors + 1) * lanes) return 0;
  if (!query.lhs_loadable || query.pairs || at_most(query.m, query.tuned.limits.gemv_rows)) return 0;
  const std::int64_t remainder = *query.n % lanes;
  if (!dots) return 2 * remainder > lanes || at_most(query.m, lanes) ? 0 : static_cast<int>(remainder);
  const bool few =
      query.k && 2 * remainder * (*query.k / lanes + 4) <= *query.k && remainder * *query.k <= most_copied;
  return few ? static_cast<int>(remainder) : 0;
}

/// Counts k in pairs. A pair has the size of an f32, so blocks of pairs have the same number of steps.
GemmQuery in_pairs(GemmQuery query) {
  if (query.k) query.k = (*query.k + 1) / 2;
  return query;
}

/// Returns a plan that first copies a plain left operand by rows, and then reads the copy as an operand along k.
GemmPlan with_packed_left(GemmPlan plan, GemmQuery query) {
  query.lhs_axis = LaneAxis::k;
  plan.lhs = Source::packed, plan.rhs = Source::loaded;
  fit_loaded_right(plan.tile, query);
  return plan;
}

/// Returns GemmPlan::start_rows.
int start_rows(const GemmPlan& plan, const GemmQuery& query) {
  const FmaBlocks& blocks = query.tuned.fma;
  if (plan.rhs != Source::loaded || mostly_epilogue(query)) return blocks.start_rows;
  return query.rhs_loadable ? blocks.packing_rows : blocks.computing_rows;
}

GemmPlan choose_plan(const GemmQuery& query);

}  // namespace

GemmTile choose_tile(DType compute, const CpuInfo& cpu, const FmaBlocks& blocks) {
  LATHE_ASSERT(compute == f32 || compute == f64 || compute == i64 || compute == i32);
  const int bytes = static_cast<int>(size_in_bytes(compute));
  // A quarter of the registers holds three columns and one broadcast.
  return {.compute = compute,
          .lanes = cpu.vectors.lanes(compute),
          .mr = accumulators(cpu.vectors) / 3,
          .nv = 3,
          .kc = blocks.usual.depth * 4 / bytes,
          .mc = blocks.usual.rows,
          .nc = blocks.usual.columns * 4 / bytes,
          .block = compute == f32 ? most_additions : 0};
}

GemmPlan plan_gemm(const GemmQuery& query) {
  std::vector<MissedPath> missed;
  using Way = std::pair<Multiplier, TriedPlan (*)(const GemmQuery&)>;
  for (const auto& [path, plan_by] :
       {Way{Multiplier::tile_mma, plan_tiles}, Way{Multiplier::split_bf16, plan_split_bf16}}) {
    TriedPlan tried = plan_by(query);
    if (tried.plan) return *std::move(tried.plan);
    if (!tried.why_not.empty()) missed.push_back({path, std::move(tried.why_not)});
  }
  const auto fitted = [&](const GemmQuery& q) {
    GemmQuery whole = q;
    const int remainder = remainder_columns(q);
    if (remainder > 0) whole.n = *q.n - remainder, whole.rhs_kept = false;  // not packed: dot products read it
    GemmPlan plan = choose_plan(whole);
    if (plan.strategy == GemmStrategy::blocked && plan.lhs == Source::direct && !plan.prefetch_right)
      plan.remainder = remainder;
    else
      plan = choose_plan(q);
    plan.copies_left =
        plan.strategy == GemmStrategy::blocked && plan.lhs == Source::direct && left_in_short_runs(query);
    fit_scratch(plan, q);
    plan.cores = q.cpu.cores;
    plan.start_rows = start_rows(plan, q);
    plan.overlap_depth = q.tuned.limits.overlap_depth;
    plan.register_epilogue = q.epilogue_small && plan.tile.one_block(q.k) &&
                             at_most(q.k, q.tuned.limits.register_depth / (q.pairs ? 2 : 1));
    plan.missed = missed;
    return plan;
  };
  if (!query.pairs) return fitted(query);
  GemmPlan plan = fitted(in_pairs(query));
  if (plan.strategy == GemmStrategy::blocked && plan.lhs != Source::direct && plan.rhs != Source::direct) {
    plan.tile.operands = GemmTile::Operands::pairs;
    return plan;
  }
  missed.push_back({Multiplier::dot_pairs, "an operand is read in place, but pairs are formed only when packing"});
  return fitted(query);
}

GemmPlan plan_few_rows(GemmQuery query, const GemmPlan& more) {
  query.split_bf16 = false;
  query.few_rows = true;
  GemmPlan plan = plan_gemm(query);
  if (more.tile.split_bf16())
    plan.missed.push_back(
        {Multiplier::split_bf16, fmt::format("this kernel runs with fewer than {} rows", more.least_rows)});
  return plan;
}

namespace {

/// Plans few rows with a right operand that is contiguous along n.
GemmPlan small_m(GemmPlan plan, const GemmQuery& query) {
  plan.rhs = Source::direct;
  fit_rows(plan.tile, query);
  if (*query.m <= query.tuned.limits.gemv_rows) fit_splits(plan, query);
  if (query.cpu.slow_last_level) fit_prefetch(plan, query);
  // A row block of the left operand that is packed into scratch, in whole vectors of rows, must fit there. The limit
  // is the kernel IR's, not the CPU's.
  constexpr int most_packed = 4096;
  const int lanes = plan.tile.lanes, rows = (plan.tile.mr + lanes - 1) / lanes * lanes;
  if (plan.lhs == Source::loaded) plan.tile.kc = std::min(plan.tile.kc, most_packed / rows);
  return plan;
}

/// Few rows with a right operand that previous runs have packed, and that comes from memory: a tile has as many rows
/// as possible and one vector of columns, so that it reads one stream at the speed of the memory. The rows are
/// packed, because registers cannot hold the addresses of 16 rows.
void fit_few_rows(GemmPlan& plan, const GemmQuery& query) {
  GemmTile& tile = plan.tile;
  const FmaBlocks& blocks = query.tuned.fma;
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  if (plan.lhs == Source::direct) plan.lhs = Source::loaded;
  tile.mr = std::min(accumulators(query.cpu.vectors), blocks.most_kept_rows);
  tile.nv = 1;
  tile.kc = depth_in_blocks(query.k, blocks.few_kept.depth * 4 / bytes, tile);
  tile.nc = floor_to(blocks.few_kept.columns * 4 / bytes, tile.n_step());
  tile.mc = floor_to(blocks.few_kept.rows, tile.mr);
  plan.prefetch_bytes = query.tuned.prefetch_bytes;
}

/// Plans a right operand that previous runs have packed. Its micro-panels are one vector wide, so that register tiles
/// of all shapes can read it.
GemmPlan with_kept_right(GemmPlan plan, const GemmQuery& query) {
  const ProductLimits& limits = query.tuned.limits;
  plan.rhs = Source::packed;
  plan.tile.panel_vectors = 1;
  if (plan.lhs == Source::loaded && may_pack_left(query)) plan.lhs = Source::packed;
  if (scattered_left(query)) plan.lhs = Source::loaded;
  if (query.few_rows || at_most(query.m, limits.few_kept_rows)) {
    fit_few_rows(plan, query);
    return plan;
  }
  plan.lhs == Source::loaded ? fit_loaded_left(plan.tile, query) : fit_packed_right(plan.tile, query);
  if (!query.m) plan.least_rows = limits.few_kept_rows;
  return plan;
}

GemmPlan choose_plan(const GemmQuery& query) {
  GemmTile tile = choose_tile(query.compute, query.cpu, query.tuned.fma);
  const bool row = query.rhs_axis == LaneAxis::row;
  const bool few = query.m && *query.m > 0;
  // Dot products add up lanes once for all of k; with more than a few rows, only a deep k pays for that.
  const ProductLimits& limits = query.tuned.limits;
  const bool deep = !query.k || *query.k >= limits.dots_depth;
  const bool dots = few && at_most(query.m, deep ? limits.dots_rows : limits.short_dots_rows) && !row &&
                    query.lhs_axis == LaneAxis::k;
  if (few && *query.m <= rows_of_short_sums) shorten_sums(tile, dots);
  GemmPlan plan{.tile = tile, .lhs = query.lhs_loadable ? Source::direct : Source::loaded};
  if (dots) {
    plan = {GemmStrategy::skinny_dot, tile, Source::direct, Source::direct};
    fit_dot(plan, query);
    const auto bytes = static_cast<std::int64_t>(size_in_bytes(query.compute));
    plan.prefetch_bytes = query.tuned.prefetch_bytes;
    plan.left_in_l1 = query.k && *query.m * *query.k * bytes <= query.cpu.l1.share();
    return plan;
  }
  if (query.rhs_kept && !at_most(query.m, limits.gemv_rows)) return with_kept_right(plan, query);
  if (few && at_most(query.m, 4 * tile.mr) && row && query.rhs_loadable) return small_m(plan, query);
  fit_columns(tile, query);
  plan.tile = tile;
  if (!reused(query) && row && query.rhs_loadable && at_most(query.n, limits.direct_columns)) {
    plan.rhs = Source::direct;
    plan.tile.nc = tile.n_step();
    if (query.lhs_axis == LaneAxis::k)
      plan.tile.kc = depth_in_blocks(
          query.k, query.tuned.fma.direct_depth * 4 / static_cast<int>(size_in_bytes(tile.compute)), tile);
    return plan;
  }
  plan.rhs = Source::loaded;
  if (plan.lhs == Source::loaded && may_pack_left(query)) plan.lhs = Source::packed;
  if (scattered_left(query)) plan.lhs = Source::loaded;
  if (plan.lhs == Source::direct && distant_left(query)) return with_packed_left(plan, query);
  if (plan.lhs == Source::loaded) {
    plan.rhs = may_pack_right(query) ? Source::packed : Source::loaded;
    plan.rhs == Source::packed ? fit_loaded_left(plan.tile, query) : fit_loaded(plan.tile, query);
    return plan;
  }
  fit_loaded_right(plan.tile, query);
  if (row && query.rhs_loadable && stays_cached(query)) {
    plan.rhs = Source::direct;
    if (query.lhs_axis == LaneAxis::row) plan.tile.nc = tile.n_step();
    return plan;
  }
  // Only rows that are known to be many pay for the traffic of a packed copy.
  const bool many = query.m && query.k && !at_most(query.m, plan.tile.mc);
  if (!many || !may_pack_right(query)) return plan;
  plan = {GemmStrategy::blocked, tile, plan.lhs, Source::packed};
  fit_packed_right(plan.tile, query);
  return plan;
}

/// Whether plans are equivalent: blocks larger than the matmul make no difference.
bool same_plan(const GemmPlan& a, const GemmPlan& b, const GemmQuery& query) {
  const auto same = [](int x, int y, const Size& size) {
    return std::min<std::int64_t>(x, size.value_or(x)) == std::min<std::int64_t>(y, size.value_or(y));
  };
  return a.lhs == b.lhs && a.rhs == b.rhs && a.splits == b.splits && a.panel == b.panel &&
         a.prefetch_right == b.prefetch_right && a.tile.mr == b.tile.mr && a.tile.nv == b.tile.nv &&
         same(a.tile.mc, b.tile.mc, query.m) && same(a.tile.nc, b.tile.nc, query.n) &&
         same(a.tile.kc, b.tile.kc, query.k);
}

/// Returns plans that pack the other operand, or pack in another place.
std::vector<GemmPlan> with_other_sources(const GemmPlan& first, const GemmQuery& query) {
  const auto with = [&](Source lhs, Source rhs) {
    GemmPlan plan = first;
    plan.lhs = lhs, plan.rhs = rhs, plan.prefetch_right = false;
    if (lhs == Source::loaded) {
      rhs == Source::packed ? fit_loaded_left(plan.tile, query) : fit_loaded(plan.tile, query);
    } else {
      rhs == Source::packed ? fit_packed_right(plan.tile, query) : fit_loaded_right(plan.tile, query);
    }
    plan.start_rows = start_rows(plan, query);
    return plan;
  };
  std::vector<GemmPlan> plans;
  const auto add = [&](Source lhs, Source rhs) {
    if (lhs != first.lhs || rhs != first.rhs) plans.push_back(with(lhs, rhs));
  };
  std::vector<Source> left;
  if (query.lhs_loadable) left.push_back(Source::direct);
  if (first.remainder == 0 && (!query.lhs_loadable || query.lhs_axis == LaneAxis::row))
    left.push_back(Source::loaded);
  if (!query.lhs_loadable && may_pack_left(query)) left.push_back(Source::packed);
  for (const Source lhs : left) {
    add(lhs, Source::loaded);
    if (may_pack_right(query)) add(lhs, Source::packed);
  }
  return plans;
}

/// Returns the plan with another shape of the register tile.
GemmPlan with_register_tile(GemmPlan plan, int mr, int nv) {
  plan.tile.nv = nv, plan.tile.mr = mr;
  plan.tile.mc = floor_to(plan.tile.mc, mr);
  plan.tile.nc = floor_to(plan.tile.nc, plan.tile.n_step());
  return plan;
}

}  // namespace

std::vector<GemmPlan> candidate_plans(GemmQuery query, GemmQuery sizes) {
  const GemmPlan first = plan_gemm(query);
  if (first.tile.pairs()) query = in_pairs(query), sizes = in_pairs(sizes);
  std::vector<GemmPlan> plans = {first};
  if (first.strategy != GemmStrategy::blocked) return plans;
  const auto add = [&](GemmPlan plan) {
    fit_scratch(plan, query);
    const auto same = [&](const GemmPlan& other) { return same_plan(plan, other, sizes); };
    if (std::none_of(plans.begin(), plans.end(), same)) plans.push_back(plan);
  };
  const GemmTile standard = choose_tile(query.compute, query.cpu, query.tuned.fma);
  const bool plain = first.tile.mr == standard.mr && first.tile.nv == standard.nv && !first.tile.pairs();
  if (plain) {
    for (const GemmPlan& plan : with_other_sources(first, query)) add(plan);
    const int all = standard.mr * standard.nv;
    for (const int nv : {2, 4}) add(with_register_tile(first, all / nv, nv));
  }
  // Factors of mc, nc and kc, in halves.
  constexpr int factors[][3] = {{1, 2, 2}, {4, 2, 2}, {2, 1, 2}, {2, 4, 2},
                                {2, 2, 1}, {2, 2, 4}, {2, 4, 1}, {4, 2, 1}};
  for (const auto& [rows, columns, depth] : factors) {
    GemmPlan plan = first;
    plan.tile.mc = floor_to(first.tile.mc * rows / 2, first.tile.mr);
    plan.tile.nc = floor_to(first.tile.nc * columns / 2, first.tile.n_step());
    plan.tile.kc = floor_to(first.tile.kc * depth / 2, first.tile.lanes);
    add(plan);
  }
  return plans;
}

std::string to_string(const GemmPlan& plan) {
  const auto packing = [](const char* operand, Source source) -> std::string {
    switch (source) {
      case Source::packed: return fmt::format(", {} packed", operand);
      case Source::loaded: return fmt::format(", {} packed in tasks", operand);
      case Source::direct: break;
    }
    return {};
  };
  const GemmTile& tile = plan.tile;
  std::string parts = plan.splits > 1 ? fmt::format(", {} splits", plan.splits) : "";
  if (plan.copies_left) parts += ", left copied";
  if (plan.prefetch_right) parts += ", right prefetched";
  if (plan.panel > 0) parts += fmt::format(", panels of {}", plan.panel);
  return fmt::format("{}x{} tiles{}, tasks of {}x{}, {} deep{}{}{}", tile.mr, tile.n_step(),
                     tile.split_bf16() ? " of split bf16" : "", tile.mc, tile.nc, tile.kc, packing("left", plan.lhs),
                     packing("right", plan.rhs), parts);
}

}  // namespace lathe::cpu
