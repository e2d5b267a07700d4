#include "passes/cpu/gemm/blocked/gemm_remainder.h"

#include <algorithm>

#include "ir/support/error.h"
#include "passes/cpu/gemm/compensated_total.h"
#include "passes/cpu/gemm/gemm_dots.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Builder;
using kernel::Value;

RemainderColumns::RemainderColumns(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                                   const GemmOperand& rhs, const Epilogue& epilogue)
    : b_(b), plan_(plan), tile_(plan.tile), sizes_(sizes), lhs_(lhs), rhs_(rhs), epilogue_(epilogue) {
  LATHE_ASSERT(plan.remainder > 0 && plan.remainder <= tile_.lanes && plan.lhs == Source::direct && !tile_.pairs());
  first_ = sizes.n - plan.remainder;
  stride_ = b.round_up(sizes.k, tile_.lanes);
}

int RemainderColumns::block(const GemmPlan& plan, LaneAxis lhs) {
  const int mr = plan.tile.mr, lanes = plan.tile.lanes;
  return lhs == LaneAxis::row ? mr * lanes : std::max(lanes / plan.remainder / mr, 1) * mr;
}

namespace {

/// Returns the number of vectors of rows to process at a time, so that there are enough independent sums.
int vectors_at_once(int remainder) { return remainder == 1 ? 8 : remainder <= 4 ? 4 : 2; }

}  // namespace

int RemainderColumns::rows_in_scratch(const GemmPlan& plan, LaneAxis lhs) {
  return block(plan, lhs) + plan.tile.lanes * (lhs == LaneAxis::row ? vectors_at_once(plan.remainder) : 1);
}

std::int64_t RemainderColumns::scratch(const GemmPlan& plan, LaneAxis lhs, std::int64_t k) {
  if (plan.remainder == 0) return 0;
  const std::int64_t lanes = plan.tile.lanes, results = rows_in_scratch(plan, lhs) * plan.remainder + lanes;
  return results + (lhs == LaneAxis::row ? 0 : plan.remainder * (k + lanes));
}

Value RemainderColumns::element(Value batch, Value k, int column) {
  const Value n = first_ + column;
  if (plan_.rhs != Source::packed) return rhs_.load(batch, n, k, rhs_.axis, 1, {});
  const int width = tile_.panel_step();
  const Value micro_panels = b_.ceil_div(sizes_.n, width), of = rhs_.batch_in_workspace(batch);
  return b_.load(rhs_.packed, ((of * micro_panels + n / width) * sizes_.k + k) * width + n % width);
}

void RemainderColumns::begin() {
  results_ = b_.alloc(tile_.compute, std::int64_t{rows_in_scratch(plan_, lhs_.axis)} * plan_.remainder + tile_.lanes,
                      kernel::Space::stack, "results");
  if (dots())
    columns_ = b_.alloc(tile_.compute, plan_.remainder * b_.constant_value(stride_).value() + 1, kernel::Space::stack,
                        "columns");
}

void RemainderColumns::copy(Value batch, Value k0, Value k1) {
  if (!dots()) return;
  const auto step = [&](Value k) {
    for (int column = 0; column < plan_.remainder; ++column)
      b_.store(columns_, column * stride_ + k, element(batch, k, column));
  };
  if (b_.is_constant(k1 - k0, 1)) return step(k0);
  for_unrolled(b_, k0, k1, 4, step);
}

void RemainderColumns::rows(Value batch, Value m0, Value m1) {
  dots() ? dot_products(batch, m0, m1) : vectors_of_rows(batch, m0, m1);
  const Value mask = b_.tail_mask(b_.index(plan_.remainder), tile_.lanes);
  b_.for_loop(m0, m1, 1, [&](Value row) {
    epilogue_(batch, row)(first_, tile_.lanes, b_.load(results_, (row - m0) * plan_.remainder, tile_.lanes, mask),
                          mask);
  });
}

void RemainderColumns::dot_products(Value batch, Value m0, Value m1) {
  const int lanes = tile_.lanes, at_once = lanes / plan_.remainder;  // rows whose sums fill a vector
  const DotTile tile{.compute = tile_.compute, .lanes = lanes, .rows = at_once, .columns = plan_.remainder};
  b_.for_loop(m0, m1, at_once, [&](Value m) {
    std::vector<Value> rows;
    for (int i = 0; i < at_once; ++i) rows.push_back(i == 0 ? m : min(m + i, m1 - 1));
    const std::vector<Value> sums = emit_dot_tile(
        b_, tile, b_.index(0), sizes_.k, known_multiple(b_, sizes_.k, lanes),
        [&](int i, Value k, Value mask) { return lhs_.load(batch, rows[i], k, LaneAxis::k, lanes, mask); },
        [&](int column, Value k, Value mask) { return b_.load(columns_, column * stride_ + k, lanes, mask); });
    store_dots(b_, tile, sums, results_, (m - m0) * plan_.remainder, plan_.remainder);
  });
}

/// Adds up the sums of blocks of k in registers.
void RemainderColumns::add_blocks(const RegisterTile& tile, const MultiplyBlock& multiply, const TileSink& sink) {
  struct Total {
    kernel::Var sum, excess;
  };
  std::vector<Total> totals;
  const Value zero = b_.constant(tile.compute, 0, tile.lanes);
  const bool may_compensate = tile_.may_compensate(b_.constant_value(sizes_.k));
  for (int i = 0; i < tile.rows * tile.vectors; ++i) totals.push_back({b_.var(zero), b_.var(zero)});
  const auto add = [&](const Total& total, Value block) {
    const auto plain = [&] { b_.set(total.sum, b_.get(total.sum) + block); };
    if (!may_compensate) return plain();
    const auto compensated = [&] {
      const CompensatedTotal next = add_block({b_.get(total.sum), b_.get(total.excess)}, block);
      b_.set(total.sum, next.sum);
      b_.set(total.excess, next.excess);
    };
    b_.if_(sizes_.k > tile_.most_plain_steps(), compensated, plain);
  };
  b_.for_loop(0, sizes_.k, tile_.block, [&](Value first) {
    std::vector<Value> block;
    multiply(first, min(first + tile_.block, sizes_.k), [&](int, int, Value sum) { block.push_back(sum); });
    b_.if_(
        first > 0,
        [&] {
          for (std::size_t i = 0; i < block.size(); ++i) add(totals[i], block[i]);
        },
        [&] {
          for (std::size_t i = 0; i < block.size(); ++i) b_.set(totals[i].sum, block[i]);
        });
  });
  for (int row = 0; row < tile.rows; ++row)
    for (int v = 0; v < tile.vectors; ++v) sink(row, v, b_.get(totals[row * tile.vectors + v].sum));
}

/// Processes a few vectors of rows at a time; their sums, one vector per column, are transposed.
void RemainderColumns::vectors_of_rows(Value batch, Value m0, Value m1) {
  const int lanes = tile_.lanes, vectors = vectors_at_once(plan_.remainder);
  const RegisterTile tile{.compute = tile_.compute, .lanes = lanes, .rows = plan_.remainder, .vectors = vectors};
  b_.for_loop(m0, m1, vectors * lanes, [&](Value m) {
    std::vector<Value> masks;
    for (int v = 0; v < vectors; ++v) masks.push_back(b_.tail_mask(m1 - m - v * lanes, lanes));
    std::vector<std::vector<Value>> sums(static_cast<std::size_t>(vectors));
    const TileSink keep = [&](int, int v, Value sum) { sums[v].push_back(sum); };
    const auto multiply = [&](Value k0, Value k1, const TileSink& sink) {
      emit_register_tile(
          b_, tile, k0, k1, [&](Value k, int column) { return element(batch, k, column); },
          [&](Value k, int v) { return lhs_.load(batch, m + v * lanes, k, LaneAxis::row, lanes, masks[v]); }, {},
          sink);
    };
    tile_.one_block(b_.constant_value(sizes_.k)) ? multiply(b_.index(0), sizes_.k, keep)
                                                 : add_blocks(tile, multiply, keep);
    for (int v = 0; v < vectors; ++v) {
      std::vector<Value>& columns = sums[v];
      columns.resize(static_cast<std::size_t>(lanes), columns.back());
      const std::vector<Value> results = transpose(b_, columns);
      for (int i = 0; i < lanes; ++i) b_.store(results_, (m - m0 + (v * lanes + i)) * plan_.remainder, results[i]);
    }
  });
}

}  // namespace lathe::cpu
