#include <algorithm>

#include "ir/support/error.h"
#include "passes/schedule/gemm.h"

namespace lathe::schedule {

namespace {

using Size = std::optional<std::int64_t>;

int floor_to(int size, int step) { return std::max(size / step * step, step); }

/// Accumulators that stay in registers beside the operands.
int accumulators(int vector_bits) { return vector_bits >= 512 ? 24 : 12; }

/// Bytes of a block of the right operand that a task packs into scratch, and of its sums.
constexpr int right_bytes = 64 * 1024, sums_bytes = 96 * 1024;

/// The blocks of a task that packs its part of the right operand itself. Where k or n is known to be small, the other
/// one grows.
void fit_loaded_right(GemmTile& tile, const GemmQuery& query) {
  const int bytes = static_cast<int>(size_in_bytes(tile.compute)), elements = right_bytes / bytes;
  tile.kc = 256;
  if (query.k && *query.k < tile.kc)
    tile.kc = static_cast<int>((std::max<std::int64_t>(*query.k, 1) + tile.lanes - 1) / tile.lanes) * tile.lanes;
  tile.nc = floor_to(std::min(elements / tile.kc, 1024 / bytes), tile.n_step());
  tile.mc = floor_to(sums_bytes / bytes / tile.nc, tile.mr);
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

bool at_most(const Size& size, std::int64_t limit) { return size && *size <= limit; }

}  // namespace

GemmTile choose_tile(DType compute, int vector_bits) {
  LATHE_ASSERT(compute == f32 || compute == f64 || compute == i64 || compute == i32);
  const int bytes = static_cast<int>(size_in_bytes(compute));
  // 512 bits: 24 of 32 registers accumulate. Else 12 of 16, with two columns and one broadcast beside them.
  return {.compute = compute,
          .lanes = vector_bits / (8 * bytes),
          .mr = vector_bits >= 512 ? 12 : 6,
          .nv = 2,
          .kc = 384 * 4 / bytes,
          .mc = 96,
          .nc = 256 * 4 / bytes};
}

GemmPlan plan_gemm(const GemmQuery& query) {
  GemmPlan plan{.tile = choose_tile(query.compute, query.vector_bits)};
  const bool row = query.rhs_axis == LaneAxis::row;
  const bool single = query.rhs_shared || at_most(query.batch, 1);  // one right operand, used by all rows
  const int skinny = accumulators(query.vector_bits) / 3;
  plan.lhs =
      query.lhs_cheap && (query.lhs_axis == LaneAxis::k || at_most(query.n, 64)) ? Source::direct : Source::loaded;
  plan.rhs = single ? Source::packed : Source::loaded;
  if (at_most(query.m, skinny) && *query.m > 0 && !row && query.lhs_axis == LaneAxis::k) {
    plan = {.strategy = GemmStrategy::skinny_dot, .tile = plan.tile, .lhs = Source::direct, .rhs = Source::direct};
    fit_dot(plan.tile, query.vector_bits, *query.m);
  } else if (at_most(query.m, 2 * plan.tile.mr) && *query.m > 0 && row) {
    plan.lhs = query.lhs_cheap ? Source::direct : Source::loaded;
    plan.rhs = Source::direct;
    fit_rows(plan.tile, query.vector_bits, *query.m);
  } else if (!single && row && query.rhs_cheap && at_most(query.n, 64)) {
    plan.rhs = Source::direct;
    plan.tile.nc = 64;
  } else if (!single || at_most(query.m, 2 * plan.tile.mc)) {
    plan.rhs = Source::loaded;
    fit_loaded_right(plan.tile, query);
  }
  return plan;
}

}  // namespace lathe::schedule
