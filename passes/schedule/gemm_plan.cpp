#include <algorithm>

#include "ir/support/error.h"
#include "passes/schedule/gemm.h"

namespace lathe::schedule {

namespace {

using Size = std::optional<std::int64_t>;

int floor_to(int size, int step) { return std::max(size / step * step, step); }

bool at_most(const Size& size, std::int64_t limit) { return size && *size <= limit; }

/// Accumulators that stay in registers beside the operands.
int accumulators(int vector_bits) { return vector_bits >= 512 ? 24 : 12; }

/// Depth of the blocks of k: equal shares of a known k, at most `limit`.
int depth(const Size& k, int limit, int lanes) {
  if (!k || *k <= 0) return limit;
  const std::int64_t passes = (*k + limit - 1) / limit, share = (*k + passes - 1) / passes;
  return static_cast<int>((share + lanes - 1) / lanes) * lanes;
}

/// The blocks of a task that packs its part of the right operand itself, once for all of its rows. A known k of one
/// block needs sums for one strip only, so that a task may have many rows. Rows that are packed as well want many
/// columns to use them.
void fit_loaded_right(GemmTile& tile, const GemmQuery& query, Source lhs) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute)), right = 64 * 1024 / bytes;
  tile.kc = depth(query.k, 256, tile.lanes);
  const bool single = at_most(query.k, tile.kc);
  const int columns =
      lhs == Source::loaded ? std::min(right / tile.kc, 1024 / bytes) : (single ? 1 : 2) * tile.n_step();
  tile.nc = floor_to(columns, tile.n_step());
  tile.mc = floor_to(single ? 1024 : 128 * 1024 / bytes / tile.nc, tile.mr);
}

/// The blocks of a task that finds the right operand packed.
void fit_packed_right(GemmTile& tile, const GemmQuery& query, Source lhs) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute));
  tile.kc = depth(query.k, 384 * 4 / bytes, tile.lanes);
  tile.mc = floor_to(lhs == Source::loaded ? 96 : 384, tile.mr);
  tile.nc = floor_to((lhs == Source::loaded ? 384 : 96) * 4 / bytes, tile.n_step());
}

/// One task does all rows; nothing is packed and the right operand is streamed once.
void fit_rows(GemmTile& tile, int vector_bits, std::int64_t m) {
  const int strips = static_cast<int>((m + tile.mr - 1) / tile.mr);
  tile.mr = static_cast<int>((m + strips - 1) / strips);
  tile.nv = std::clamp(accumulators(vector_bits) / tile.mr, 1, 8);
  tile.kc = 4096;
  tile.nc = std::max(256 * 4 / static_cast<int>(size_in_bytes(tile.compute)) / tile.n_step(), 1) * tile.n_step();
  tile.mc = tile.mr * strips;
}

/// Rows times columns of dot products at once.
void fit_dot(GemmTile& tile, int vector_bits, std::int64_t m) {
  tile.mr = static_cast<int>(m);
  tile.nv = std::clamp(accumulators(vector_bits) / tile.mr, 1, 8);
  tile.mc = tile.mr;
  tile.nc = floor_to(64, tile.nv);
}

}  // namespace

GemmTile choose_tile(DType compute, int vector_bits) {
  LATHE_ASSERT(compute == f32 || compute == f64 || compute == i64 || compute == i32);
  const int bytes = static_cast<int>(size_in_bytes(compute));
  // 512 bits: 24 of 32 registers accumulate. Else 12 of 16, with three columns and one broadcast beside them.
  return {.compute = compute,
          .lanes = vector_bits / (8 * bytes),
          .mr = vector_bits >= 512 ? 8 : 4,
          .nv = 3,
          .kc = 384 * 4 / bytes,
          .mc = 192,
          .nc = 96 * 4 / bytes};
}

GemmPlan plan_gemm(const GemmQuery& query) {
  const GemmTile tile = choose_tile(query.compute, query.vector_bits);
  GemmPlan plan{.tile = tile, .lhs = query.lhs_cheap ? Source::direct : Source::loaded};
  const bool row = query.rhs_axis == LaneAxis::row;
  const bool reused = query.rhs_shared || at_most(query.batch, 1);  // one right operand, for all rows
  const bool few = query.m && *query.m > 0;
  if (few && at_most(query.m, 8) && !row && query.lhs_axis == LaneAxis::k) {
    plan = {GemmStrategy::skinny_dot, tile, Source::direct, Source::direct};
    fit_dot(plan.tile, query.vector_bits, *query.m);
    return plan;
  }
  if (few && at_most(query.m, 2 * tile.mr) && row) {
    plan.rhs = Source::direct;
    fit_rows(plan.tile, query.vector_bits, *query.m);
    // A strip of the left operand that is packed into scratch, in whole vectors of rows, has to fit there.
    const int rows = (plan.tile.mr + tile.lanes - 1) / tile.lanes * tile.lanes;
    if (plan.lhs == Source::loaded) plan.tile.kc = std::min(plan.tile.kc, 4096 / rows);
    return plan;
  }
  if (!reused && row && query.rhs_cheap && at_most(query.n, 64)) {
    plan.rhs = Source::direct;
    plan.tile.nc = (query.lhs_axis == LaneAxis::k ? 1 : 2) * tile.n_step();  // a row operand is read once
    return plan;
  }
  fit_loaded_right(plan.tile, query, plan.lhs);
  plan.rhs = Source::loaded;
  const bool packed_once = at_most(query.m, plan.tile.mc) && plan.lhs == Source::direct;
  if (!reused || packed_once) return plan;
  plan = {GemmStrategy::blocked, tile, plan.lhs, Source::packed};
  fit_packed_right(plan.tile, query, plan.lhs);
  return plan;
}

}  // namespace lathe::schedule
