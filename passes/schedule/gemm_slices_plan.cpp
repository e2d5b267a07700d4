#include <algorithm>

#include "passes/schedule/gemm_fit.h"

namespace lathe::schedule {

namespace {

constexpr int bytes_of_pair = 2 * kernel::tile_slices * 2;

/// Many rows: a task packs some for all its columns, of which there are few. Blocks of the right operand come from
/// L3.
void fit_many_rows(GemmTile& t, const GemmQuery& query) {
  t.mc = 64;
  t.nc = 768;
  t.kc = pairs_deep(query.k, 64);
}

/// Both operands packed ahead: a strip of the left one meets all of a block of the right one, which stays in L2.
void fit_packed(GemmTile& t, const GemmQuery& query) {
  const bool single = at_most(query.k, 1024);
  constexpr int near = 1200 * 1024;
  t.kc = pairs_deep(query.k, single ? 512 : 384);
  t.nc = std::min(floor_to(near / bytes_of_pair / t.kc, t.n_step()), single ? 512 : 256);
  t.mc = single ? 512 : 224;
}

/// The right operand, weights mostly, is packed by each task for all its rows, which stay in L2.
void fit_packed_left(GemmTile& t, const GemmQuery& query) {
  const bool single = at_most(query.k, 1024);
  t.kc = pairs_deep(query.k, single ? 512 : 192);
  t.nc = single ? floor_to(200 * 1024 / bytes_of_pair / t.kc, t.n_step()) : 64;
  t.mc = single ? 384 : 256;
}

}  // namespace

std::optional<GemmPlan> plan_slices(const GemmQuery& query) {
  // Fewer rows, columns or k do not make up for the packing.
  const auto few = [](const Size& size, std::int64_t least) { return size && *size < least; };
  if (!query.sliced || !query.n || few(query.m, 96) || few(query.n, 96) || few(query.k, 64)) return {};
  if (!query.rhs_shared && !at_most(query.batch, 1)) return {};
  GemmPlan plan{
      .strategy = GemmStrategy::tiles,
      .tile = {.compute = f32, .lanes = 16, .mr = 32, .nv = 2, .pairs = true, .tiles = true, .sliced = true}};
  // A packed copy is half as large again as the operand.
  constexpr std::int64_t many = 8192;
  const bool small_right = *query.n <= many && !few(query.m, 385) && (!query.k || *query.k <= many);
  if (query.m && *query.m > many) {
    if (!small_right) return {};
    plan.lhs = Source::loaded, plan.rhs = Source::packed;
    fit_many_rows(plan.tile, query);
  } else {
    if (query.k && *query.k > many) return {};
    plan.lhs = Source::packed, plan.rhs = query.m && small_right ? Source::packed : Source::loaded;
    plan.rhs == Source::packed ? fit_packed(plan.tile, query) : fit_packed_left(plan.tile, query);
  }
  fit_sizes(plan.tile, query);
  return plan;
}

}  // namespace lathe::schedule
