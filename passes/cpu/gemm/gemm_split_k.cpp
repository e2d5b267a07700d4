#include "ir/support/error.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

namespace {

/// Returns the width of a row of sums, in whole vectors. Sums are stored as [batch * splits + split][m][columns].
Value columns_in(Builder& b, const GemmTile& tile, Value n) { return b.round_up(n, tile.lanes); }

/// Returns the operand of one split, whose k starts at that of the split.
GemmOperand split_of(const GemmOperand& operand, int splits, Value depth) {
  GemmOperand split = operand;
  split.scaled = {};
  split.load = [load = operand.load, splits, depth](Value batch, Value row, Value k, LaneAxis axis, int lanes,
                                                    Value mask) {
    return load(batch / splits, row, batch % splits * depth + k, axis, lanes, mask);
  };
  return split;
}

}  // namespace

std::int64_t columns_of_sums(const GemmTile& tile, std::int64_t n) {
  return (n + tile.lanes - 1) / tile.lanes * tile.lanes;
}

std::int64_t split_k_sums(const GemmPlan& plan, std::int64_t m, std::int64_t n) {
  return plan.splits * m * columns_of_sums(plan.tile, n);
}

void emit_gemm_split_k(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                       const GemmOperand& rhs, Buffer sums) {
  LATHE_ASSERT(plan.lhs != Source::packed && plan.rhs != Source::packed);
  LATHE_ASSERT(b.constant_value(sizes.k).value_or(0) % plan.splits == 0);
  const Value depth = sizes.k / plan.splits, columns = columns_in(b, plan.tile, sizes.n);
  const auto store = [&](Value batch, Value m) -> RowEpilogue {
    const Value row = (batch * sizes.m + m) * columns;
    return [&b, sums, row](Value n, int, Value acc, Value) { b.store(sums, row + n, acc); };
  };
  GemmPlan each = plan;
  each.splits = 1;
  emit_gemm(b, each, {sizes.batch * plan.splits, sizes.m, sizes.n, depth}, split_of(lhs, plan.splits, depth),
            split_of(rhs, plan.splits, depth), store);
}

void emit_reduce_split_k(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, Buffer sums,
                         const Epilogue& epilogue) {
  const int lanes = plan.tile.lanes;
  const Value columns = columns_in(b, plan.tile, sizes.n), blocks = b.ceil_div(sizes.n, plan.tile.n_step());
  b.parallel_for(0, sizes.batch * sizes.m * blocks, 1, [&](Value index) {
    const Value n0 = index % blocks * plan.tile.n_step(), row = index / blocks;
    const Value batch = row / sizes.m, m = row % sizes.m;
    const RowEpilogue consume = epilogue(batch, m);
    b.for_loop(n0, min(n0 + plan.tile.n_step(), sizes.n), lanes, [&](Value n) {
      Value sum;
      for (int split = 0; split < plan.splits; ++split) {
        const Value position = ((batch * plan.splits + split) * sizes.m + m) * columns + n;
        const Value part = b.load(sums, position, lanes);
        sum = split == 0 ? part : sum + part;
      }
      consume(n, lanes, sum, known_multiple(b, sizes.n, lanes) ? Value{} : b.tail_mask(sizes.n - n, lanes));
    });
  });
}

LoadOperand load_from(const LoadOperand& load, Value k0) {
  return [load, k0](Value batch, Value row, Value k, LaneAxis axis, int lanes, Value mask) {
    return load(batch, row, k + k0, axis, lanes, mask);
  };
}

void emit_gemm_panel(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                     const GemmOperand& rhs, const GemmPanel& panel) {
  LATHE_ASSERT(plan.lhs == Source::packed && plan.rhs == Source::packed);
  const Value columns = columns_in(b, plan.tile, sizes.n);
  const auto add = [&](Value batch, Value m) -> RowEpilogue {
    const Value row = (batch * sizes.m + m) * columns;
    return [&b, panel, row](Value n, int lanes, Value acc, Value) {
      const auto store = [&](Value sum) { b.store(panel.sums, row + n, sum); };
      b.if_(panel.first, [&] { store(acc); }, [&] { store(b.load(panel.sums, row + n, lanes) + acc); });
    };
  };
  emit_gemm(b, plan, sizes, lhs, rhs, add);
}

}  // namespace lathe::cpu
