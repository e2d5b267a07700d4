#include <algorithm>
#include <numeric>

#include "ir/hardware/memory_units.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"

namespace lathe::cpu {

namespace {

/// Whether the right operand stays in L2.
bool lies_in_l2(const GemmQuery& query) {
  return query.n && query.k && *query.n * *query.k <= elements_of_l2(query.cpu) / 2;
}

/// GEMV: the right operand is read from memory once, and only its access pattern matters. A task reads a few
/// of its rows at a time, over many columns: several long parallel runs, which the hardware prefetcher follows. A few
/// columns down all of k would touch another page at every step.
void fit_streamed(GemmTile& tile, const GemmQuery& query) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  constexpr std::int64_t usual_columns = 2048;  // assumed if unknown
  tile.nv = std::min(tile.nv, query.tuned.fma.streams);
  tile.kc = query.tuned.fma.streamed_depth;
  const std::int64_t quarter = (query.n.value_or(usual_columns) + 3) / 4;
  const std::int64_t columns = std::clamp<std::int64_t>(quarter, tile.n_step(), page_bytes / bytes);
  tile.nc = static_cast<int>((columns + tile.n_step() - 1) / tile.n_step()) * tile.n_step();
}

}  // namespace

void fit_splits(GemmPlan& plan, const GemmQuery& query) {
  const std::int64_t least = query.tuned.limits.least_split;
  const std::int64_t most = 2 * query.cpu.cores;  // tasks to create by splitting
  if (!query.n || !query.k || *query.n * *query.k < 8 * least) return;
  GemmTile tile = plan.tile;
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  // The sums of a step and its vectors of the right operand are in registers at the same time.
  constexpr int most_of_a_row = 12, most_of_rows = 8;
  tile.nv = std::clamp((query.cpu.vectors.count - 1) / (tile.mr + 1), 1, tile.mr == 1 ? most_of_a_row : most_of_rows);
  tile.kc = 8 * tile.mr;
  const auto l1 = static_cast<int>(query.cpu.l1.share());
  tile.nc = floor_to(std::min(l1 / 2, l1 / tile.mr) / bytes, tile.n_step());
  const std::int64_t blocks = (*query.n + tile.nc - 1) / tile.nc;
  std::int64_t splits = std::min(*query.n * *query.k / least, most / std::min(blocks, most));
  while (*query.k % splits != 0) --splits;
  if (splits * blocks < 4) return;
  plan.tile = tile, plan.splits = static_cast<int>(splits);
}

void fit_prefetch(GemmPlan& plan, const GemmQuery& query) {
  const std::int64_t streamed = 4 * elements_of_l2(query.cpu);  // above this size splits read as fast
  if (!query.n || !query.k || plan.lhs != Source::direct || lies_in_l2(query)) return;
  const std::int64_t m = *query.m;
  const FmaBlocks& blocks = query.tuned.fma;
  const ProductLimits& limits = query.tuned.limits;
  GemmTile tile = plan.tile;
  fit_rows(tile, query);
  if (m <= limits.gemv_rows) {
    // One register tile of columns per task, over all of k.
    tile.nv = accumulators(query.cpu.vectors) / std::max(tile.mr, 3);
    tile.nc = tile.n_step();
    tile.kc = static_cast<int>(*query.k);
    if (m == 1 || *query.n * *query.k > streamed || *query.n < 4 * tile.nc) return;
  } else {
    tile.kc = m <= limits.prefetched_small_m ? blocks.prefetched_depth : blocks.prefetched_rows_depth;
    const auto columns = static_cast<int>(std::min<std::int64_t>(blocks.prefetched_columns, *query.n));
    tile.nc = floor_to(columns + tile.n_step() - 1, tile.n_step());
  }
  plan.tile = tile, plan.prefetch_right = true, plan.prefetch_steps = blocks.prefetched_steps, plan.splits = 1;
}

void fit_rows(GemmTile& tile, const GemmQuery& query) {
  const std::int64_t m = *query.m;
  const FmaBlocks& blocks = query.tuned.fma;
  const ProductLimits& limits = query.tuned.limits;
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  const bool again = m > 2 * tile.mr;
  const bool few_whole = query.n && (*query.n == 4 * tile.lanes || *query.n == 8 * tile.lanes);
  if (few_whole && query.cpu.vectors.count >= blocks.wide_tile_registers && m > tile.mr)
    tile.mr = accumulators(query.cpu.vectors) / 4;  // 4 vectors, instead of 2 or of 3 and 2
  tile.mr = equal_share(m, tile.mr);
  tile.nv = std::clamp(accumulators(query.cpu.vectors) / tile.mr, 1, 8);
  if (query.n && *query.n > 0) tile.nv = equal_share((*query.n + tile.lanes - 1) / tile.lanes, tile.nv);
  const bool narrow =
      at_most(query.n, limits.narrow_columns) && (at_most(query.k, limits.narrow_depth) || lies_in_l2(query));
  // One block for the k of most matmuls: no data in L1 would be read again.
  constexpr int usual_k = 4096;
  tile.kc = again && !narrow ? blocks.again_depth * 4 / bytes : usual_k;
  tile.nc = again ? tile.n_step() : floor_to(blocks.once_columns * 4 / bytes, tile.n_step());
  if (again && narrow) tile.nc *= static_cast<int>((std::max<std::int64_t>(*query.n, 1) + tile.nc - 1) / tile.nc);
  tile.mc = static_cast<int>((m + tile.mr - 1) / tile.mr) * tile.mr;
  if (m <= limits.gemv_rows && !lies_in_l2(query)) fit_streamed(tile, query);
}

/// A row block's block of the left operand fits into L1. If the right operand is in L2, 4 x 4 sums are enough, and
/// they fill a vector. From L3 or memory, it is read along fewer columns at a time, and more rows share the loaded
/// data.
void fit_dot(GemmPlan& plan, const GemmQuery& query) {
  GemmTile& tile = plan.tile;
  const FmaBlocks& blocks = query.tuned.fma;
  const ProductLimits& limits = query.tuned.limits;
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  const bool in_l2 = query.n && query.k && *query.n * *query.k * bytes <= query.cpu.l2.share() / 2;
  tile.mr = equal_share(*query.m, !in_l2 ? tile.mr : at_most(query.m, 6) ? 6 : 4);
  tile.nv = std::clamp(accumulators(query.cpu.vectors) / tile.mr, 1, std::min(4, tile.lanes));
  tile.mc = static_cast<int>((*query.m + tile.mr - 1) / tile.mr) * tile.mr;
  constexpr int all_of_k = 1'048'576;  // one block for any k
  const int block = tile.block * tile.lanes;
  tile.kc = *query.m > 1 ? depth_in_blocks(query.k, blocks.dots_depth * 4 / bytes, tile.lanes, block) : all_of_k;
  const int columns = std::lcm(tile.nv, tile.lanes);
  const bool wide = at_most(query.k, tile.kc) && query.n && *query.n >= limits.wide_columns;
  tile.nc = floor_to(wide ? blocks.wide_dots_columns : blocks.dots_columns, columns);
  plan.columns_in_turn = at_most(query.m, limits.gemv_rows) && at_most(query.k, tile.kc) && !lies_in_l2(query);
}

}  // namespace lathe::cpu
