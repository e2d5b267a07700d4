#include "passes/schedule/gemm.h"

#include "passes/schedule/gemm_strategies.h"

namespace lathe::schedule {

void emit_gemm(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
               const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch) {
  switch (plan.strategy) {
    case GemmStrategy::blocked: return emit_blocked_gemm(b, plan, sizes, lhs, rhs, epilogue, prefetch);
    case GemmStrategy::tiles: return emit_tile_gemm(b, plan, sizes, lhs, rhs, epilogue);
    case GemmStrategy::skinny_dot: return emit_skinny_dot(b, plan, sizes, lhs, rhs, epilogue);
  }
}

}  // namespace lathe::schedule
