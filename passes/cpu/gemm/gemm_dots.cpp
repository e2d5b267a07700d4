#include "passes/cpu/gemm/gemm_dots.h"

#include <algorithm>
#include <utility>

#include "passes/cpu/gemm/compensated_total.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

using kernel::Builder;
using kernel::Value;
using kernel::Var;

namespace {

std::vector<Value> values_of(Builder& b, const std::vector<Var>& vars) {
  std::vector<Value> values;
  for (const Var& var : vars) values.push_back(b.get(var));
  return values;
}

/// Adds groups of `count` values pairwise until one group is left.
std::vector<Value> added_pairwise(std::vector<Value> values, std::size_t count) {
  for (std::size_t left_over = values.size() / 2; left_over >= count; left_over /= 2) {
    for (std::size_t i = 0; i < left_over; ++i) values[i] = values[i] + values[i + left_over];
    values.resize(left_over);
  }
  return values;
}

/// Adds the products of k0 .. k1 to sums of rows x columns, one run of the factor at a time.
void emit_dot_runs(Builder& b, const DotTile& tile, Value k0, Value k1, const DotVector& left, const DotVector& right,
                   const DotFactor& factor, const std::vector<Var>& sums) {
  const auto at = [&](int row, int column) { return static_cast<std::size_t>(row * tile.columns + column); };
  const int vectors = factor.run % (4 * tile.lanes) == 0 ? 4 : 1, chunk = vectors * tile.lanes;
  b.for_loop(k0, k1, factor.run, [&](Value first) {
    std::vector<Var> parts;
    for (int i = 0; i < tile.rows * tile.columns; ++i)
      parts.push_back(b.var(b.constant(tile.compute, 0, tile.lanes)));
    const auto step = [&](Value k) {
      std::vector<Value> columns;
      for (int j = 0; j < tile.columns; ++j) columns.push_back(right(j, k, {}));
      for (int i = 0; i < tile.rows; ++i) {
        const Value row = left(i, k, {});
        for (int j = 0; j < tile.columns; ++j)
          b.set(parts[at(i, j)], multiply_add(b, row, columns[j], b.get(parts[at(i, j)])));
      }
    };
    const auto steps = [&](Value k) {
      if (factor.prefetch)
        for (int j = 0; j < tile.columns; ++j) factor.prefetch(j, k);
      for (int v = 0; v < vectors; ++v) step(k + v * tile.lanes);
    };
    if (factor.run == chunk)
      steps(first);
    else
      b.for_loop(first, first + factor.run, chunk, steps);
    for (int j = 0; j < tile.columns; ++j) {
      const Value shared = b.broadcast(factor.of(j, first), tile.lanes);
      for (int i = 0; i < tile.rows; ++i)
        b.set(sums[at(i, j)], multiply_add(b, b.get(parts[at(i, j)]), shared, b.get(sums[at(i, j)])));
    }
  });
}

}  // namespace

std::vector<Value> emit_dot_tile(Builder& b, const DotTile& tile, Value k0, Value k1, bool whole,
                                 const DotVector& left, const DotVector& right, const DotStart& start,
                                 const DotFactor& factor) {
  const Value zero = b.constant(tile.compute, 0, tile.lanes);
  const int count = tile.rows * tile.columns;
  std::vector<Var> sums;  // sums of the first accumulator, then of the next ones
  for (int i = 0; i < count * (factor.run > 0 ? 1 : tile.depth); ++i) sums.push_back(b.var(zero));
  if (start) start(sums);
  if (factor.run > 0) {
    emit_dot_runs(b, tile, k0, k1, left, right, factor, sums);
    return values_of(b, sums);
  }
  const auto step = [&](Value k, int accumulator, Value mask) {
    const auto load = [&](const DotVector& from, int i) {
      const Value value = from(i, k, mask);
      return mask ? b.select(mask, value, zero) : value;
    };
    std::vector<Value> columns;
    for (int j = 0; j < tile.columns; ++j) columns.push_back(load(right, j));
    for (int i = 0; i < tile.rows; ++i) {
      const Value row = load(left, i);
      for (int j = 0; j < tile.columns; ++j) {
        const Var sum = sums[accumulator * count + i * tile.columns + j];
        b.set(sum, multiply_add(b, row, columns[j], b.get(sum)));
      }
    }
  };
  const auto steps = [&](Value lo, Value hi) {
    const Value even = lo + (hi - lo) / tile.lanes * tile.lanes;
    Value remainder = lo;
    if (tile.depth > 1) {
      remainder = lo + (hi - lo) / (tile.lanes * tile.depth) * (tile.lanes * tile.depth);
      b.for_loop(lo, remainder, tile.lanes * tile.depth, [&](Value k) {
        for (int d = 0; d < tile.depth; ++d) step(k + d * tile.lanes, d, {});
      });
    }
    b.for_loop(remainder, even, tile.lanes, [&](Value k) { step(k, 0, {}); });
    if (!whole) b.if_(even < hi, [&] { step(even, 0, b.tail_mask(hi - even, tile.lanes)); });
  };
  const int length = tile.part * tile.depth * tile.lanes;
  if (length == 0) {
    steps(k0, k1);
  } else {
    const std::vector<Var> parts = std::exchange(sums, {});
    for (std::size_t i = 0; i < parts.size(); ++i) sums.push_back(b.var(zero));
    b.for_loop(k0, k1, length, [&](Value first) {
      steps(first, min(first + length, k1));
      for (std::size_t i = 0; i < parts.size(); ++i) {
        b.set(parts[i], b.get(parts[i]) + b.get(sums[i]));
        b.set(sums[i], zero);
      }
    });
    sums = parts;
  }
  return added_pairwise(values_of(b, sums), static_cast<std::size_t>(count));
}

namespace {

/// Passes the sums of the lanes to put(first row, its position, sums of as many rows as fill a vector).
void for_vectors_of_rows(Builder& b, const DotTile& tile, const std::vector<Value>& sums, Value position, int stride,
                         const std::function<void(int first, Value at, Value added)>& put) {
  const int at_once = tile.lanes / tile.columns;
  for (int first = 0; first < tile.rows; first += at_once) {
    std::vector<Value> group;
    for (int i = 0; i < tile.lanes; ++i)
      group.push_back(sums[std::min(static_cast<std::size_t>(first * tile.columns + i), sums.size() - 1)]);
    put(first, position + first * stride, sums_of_lanes(b, std::move(group)));
  }
}

/// Calls put(position, sums) for each row of a vector of rows; its sums are the first lanes.
void for_rows(Builder& b, const DotTile& tile, int first, Value at, int stride, Value added,
              const std::function<void(Value position, Value sums)>& put) {
  put(at, added);
  for (int row = 1; row < std::min(tile.lanes / tile.columns, tile.rows - first); ++row) {
    std::vector<int> lanes;
    for (int i = 0; i < tile.lanes; ++i) lanes.push_back(std::min(row * tile.columns + i, tile.lanes - 1));
    put(at + row * stride, b.shuffle(added, added, std::move(lanes)));
  }
}

}  // namespace

void store_dots(Builder& b, const DotTile& tile, const std::vector<Value>& sums, kernel::Buffer to, Value position,
                int stride) {
  const auto store = [&](Value at, Value row) { b.store(to, at, row); };
  for_vectors_of_rows(b, tile, sums, position, stride, [&](int first, Value at, Value added) {
    stride == tile.columns ? store(at, added) : for_rows(b, tile, first, at, stride, added, store);
  });
}

void add_dots(Builder& b, const DotTile& tile, const std::vector<Value>& sums, const DotTotals& to, Value position,
              int stride, Value continues) {
  const Value mask = b.tail_mask(b.index(tile.columns), tile.lanes);
  const auto add = [&](Value at, Value row) {
    const kernel::Var sum = b.var(row), excess = b.var(b.constant(tile.compute, 0, tile.lanes));
    b.if_(continues, [&] {
      const Value before = b.load(to.sums, at, tile.lanes, mask);
      const auto plain = [&] { b.set(sum, before + row); };
      if (!to.excess) return plain();
      const auto compensated = [&] {
        const CompensatedTotal total = add_block({before, b.load(to.excess->buffer, at, tile.lanes, mask)}, row);
        b.set(sum, total.sum);
        b.set(excess, total.excess);
      };
      b.if_(to.excess->when, compensated, plain);
    });
    b.store(to.sums, at, b.get(sum), mask);
    if (to.excess) b.store(to.excess->buffer, at, b.get(excess), mask);
  };
  for_vectors_of_rows(b, tile, sums, position, stride,
                      [&](int first, Value at, Value added) { for_rows(b, tile, first, at, stride, added, add); });
}

}  // namespace lathe::cpu
