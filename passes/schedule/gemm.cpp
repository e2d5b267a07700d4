#include "passes/schedule/gemm.h"

#include "ir/support/error.h"
#include "passes/schedule/gemm_strategies.h"

namespace lathe::schedule {

GemmTile choose_tile(DType compute, int vector_bits) {
  LATHE_ASSERT(compute == f32 || compute == f64 || compute == i64 || compute == i32);
  const int bytes = static_cast<int>(size_in_bytes(compute));
  GemmTile tile{.compute = compute, .lanes = vector_bits / (8 * bytes)};
  if (vector_bits >= 512) {
    tile.mr = 12, tile.nv = 2;
  } else {
    tile.mr = 6, tile.nv = 2;  // 12 accumulators, 2 columns, 1 broadcast: 15 of 16 registers
  }
  tile.kc = 384 * 4 / bytes;
  tile.mc = 192;
  tile.nc = 256 * 4 / bytes;
  return tile;
}

GemmPlan plan_gemm(const GemmQuery& query) {
  GemmPlan plan{.tile = choose_tile(query.compute, query.vector_bits)};
  return plan;
}

void emit_gemm(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
               const GemmOperand& rhs, const Epilogue& epilogue) {
  switch (plan.strategy) {
    case GemmStrategy::blocked: return emit_blocked_gemm(b, plan, sizes, lhs, rhs, epilogue);
    case GemmStrategy::skinny_dot: LATHE_ASSERT(false);
  }
}

}  // namespace lathe::schedule
