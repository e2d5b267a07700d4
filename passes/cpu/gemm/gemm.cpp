#include "passes/cpu/gemm/gemm.h"

#include "passes/cpu/gemm/gemm_strategies.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"

namespace lathe::cpu {

using kernel::Builder;
using kernel::Value;

Value block_size(Builder& b, Value size, Value limit, int step) {
  const Value blocks = max((size + limit - 1) / limit, 1);
  return max(b.round_up(b.ceil_div(size, blocks), step), step);
}

Value rows_for_tasks(Builder& b, const GemmSizes& sizes, Value column_blocks, const GemmPlan& plan, int unit) {
  constexpr int most_more = 7;  // candidates besides the fewest blocks
  constexpr int parts = 20;     // the end comes a twentieth earlier, and all tasks take at most a twentieth longer
  const Value fewest = max(b.ceil_div(sizes.m, b.index(floor_to(plan.tile.mc, unit))), 1);
  const auto rows_in = [&](Value blocks) { return max(b.round_up(b.ceil_div(sizes.m, blocks), unit), unit); };
  const auto tasks = [&](Value rows) { return sizes.batch * column_blocks * b.ceil_div(sizes.m, rows); };
  const auto time = [&](Value tasks_in_turn, Value rows) { return tasks_in_turn * (rows + plan.start_rows); };
  // The last core ends half a task later than the tasks take, because other programs delay it.
  const auto end = [&](Value rows) { return time(b.ceil_div(tasks(rows), b.index(plan.cores)) * 2 + 1, rows); };
  Value rows = rows_in(fewest), least = end(rows);
  const Value most = time(tasks(rows), rows) * (parts + 1);
  for (int more = 1; more <= most_more; ++more) {
    const Value fewer = rows_in(fewest + more), other = end(fewer);
    const Value better = other * parts < least * (parts - 1) && time(tasks(fewer), fewer) * parts <= most;
    rows = b.select(better, fewer, rows), least = b.select(better, other, least);
  }
  return rows;
}

void for_each_task(Builder& b, const GemmSizes& sizes, Value rows, Value columns,
                   const std::function<void(const GemmTask&)>& body) {
  const Value column_blocks = b.ceil_div(sizes.n, columns), row_blocks = b.ceil_div(sizes.m, rows);
  b.parallel_for(0, sizes.batch * column_blocks * row_blocks, 1, [&](Value index) {
    // If `actual` may reduce the rows, tasks of the same columns are adjacent, so that threads share the rows that
    // exist.
    const bool rows_first = static_cast<bool>(sizes.actual);
    const Value inner = rows_first ? row_blocks : column_blocks, outer = rows_first ? column_blocks : row_blocks;
    const Value at_inner = index % inner, remainder = index / inner, at_outer = remainder % outer;
    const Value n0 = (rows_first ? at_outer : at_inner) * columns, m0 = (rows_first ? at_inner : at_outer) * rows;
    body({.batch = remainder / outer,
          .m0 = m0,
          .m1 = min(m0 + rows, sizes.m),
          .n0 = n0,
          .n1 = min(n0 + columns, sizes.n)});
  });
}

void for_each_pass(Builder& b, Value steps, Value passes, int kc, const std::function<void(const GemmPass&)>& body) {
  b.for_loop(0, passes, 1, [&](Value number) {
    const Value k0 = number * kc;
    body(
        {.k0 = k0, .depth = min(steps - k0, kc), .continues = number > 0, .last = kernel::equal(number, passes - 1)});
  });
}

void emit_gemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
               const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch) {
  switch (plan.strategy) {
    case GemmStrategy::blocked: return emit_blocked_gemm(b, plan, sizes, lhs, rhs, epilogue, prefetch);
    case GemmStrategy::tiles: return emit_tile_gemm(b, plan, sizes, lhs, rhs, epilogue);
    case GemmStrategy::skinny_dot: return emit_skinny_dot(b, plan, sizes, lhs, rhs, epilogue);
  }
}

}  // namespace lathe::cpu
