#include "passes/cpu/gemm/split_bf16_sums.h"

#include <limits>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/gemm/gemm_split_bf16.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

namespace {

constexpr int row_lanes = kernel::tile_side, side = SplitBf16Sums::side;
constexpr int row_bytes = row_lanes * 4;  // of f32

Value is_finite(Builder& b, Value vector) {
  return b.apply(ScalarOp::abs, {vector}) < std::numeric_limits<double>::infinity();
}

}  // namespace

SplitBf16Sums::SplitBf16Sums(Builder& b)
    : SplitBf16Sums(b, {.exact = b.alloc(f32, side * side, kernel::Space::stack, "exact"),
                        .left = b.alloc(f32, side * side, kernel::Space::stack, "exact_left"),
                        .right = b.alloc(f32, side * side, kernel::Space::stack, "exact_right")}) {}

/// 0 times a sum is NaN if the sum is not finite. Adding these products gives one value per vector of columns, which
/// shows whether all sums are finite without a chain of comparisons.
void SplitBf16Sums::finish_sums(const Block& block, const MicroPanelSource& left, const MicroPanelSource& right) {
  const Value zero = b_.constant(f32, 0, row_lanes);
  std::vector<kernel::Var> zeros;
  for (int v = 0; v < block.vectors; ++v) zeros.push_back(b_.var(zero));
  each(block, [&](const Position& at) {
    const kernel::Var& of_column = zeros[at.vector];
    const Value sum = b_.load(block.sums, at.sums, row_lanes) * (1 / (split_scale * split_scale));
    b_.store(block.sums, at.sums, sum);
    const Value more = b_.fma(sum, zero, b_.get(of_column));
    b_.set(of_column, at.inside ? b_.select(at.inside, more, zero) : more);
  });
  Value all = b_.get(zeros.front());
  for (std::size_t v = 1; v < zeros.size(); ++v) all = all + b_.get(zeros[v]);
  b_.if_(kernel::logical_not(b_.reduce(ScalarOp::logical_and, equal(all, zero))), [&] {
    multiply(left, right);
    each(block, [&](const Position& at) {
      const Value sum = b_.load(block.sums, at.sums, row_lanes);
      b_.store(block.sums, at.sums, b_.select(is_finite(b_, sum), sum, b_.load(exact_, at.exact, row_lanes)));
    });
  });
}

void SplitBf16Sums::each(const Block& block, const std::function<void(const Position&)>& body) {
  std::vector<Value> inside;
  for (int v = 0; v < block.vectors; ++v)
    inside.push_back(known_multiple(b_, block.columns, block.vectors * row_lanes)
                         ? Value{}
                         : b_.tail_mask(block.columns - v * row_lanes, row_lanes));
  b_.for_loop(0, min(block.rows, side), 1, [&](Value row) {
    for (int v = 0; v < block.vectors; ++v)
      body({.vector = v,
            .sums = block.first + row * block.stride + v * row_lanes,
            .exact = row * side + v * row_lanes,
            .inside = inside[v]});
  });
}

/// Computes exact_ = the products of 32 rows and 32 columns, 32 k at a time.
void SplitBf16Sums::multiply(const MicroPanelSource& left, const MicroPanelSource& right) {
  constexpr RegisterTile tile{f32, row_lanes, 8, side / row_lanes};
  b_.for_loop(0, side * side, row_lanes, [&](Value i) { b_.store(exact_, i, b_.constant(f32, 0, row_lanes)); });
  b_.for_loop(0, left.depth, side, [&](Value k) {
    const Value depth = min(left.depth - k, side);
    fill(left_, left, k, depth);
    fill(right_, right, k, depth);
    b_.for_loop(0, side, tile.rows, [&](Value row) {
      const auto position = [&](int r, int v) { return (row + r) * side + v * row_lanes; };
      emit_register_tile(
          b_, tile, b_.index(0), depth, [&](Value step, int r) { return b_.load(left_, step * side + row + r); },
          [&](Value step, int v) { return b_.load(right_, step * side + v * row_lanes, row_lanes, {}, row_bytes); },
          [&](int r, int v) { return b_.load(exact_, position(r, v), row_lanes, {}, row_bytes); },
          [&](int r, int v, Value sum) { b_.store(exact_, position(r, v), sum, {}, row_bytes); });
    });
  });
}

/// Copies to[step][row] = the steps k .. k + depth of a micro-panel. Rows past the last one are undefined.
void SplitBf16Sums::fill(Buffer to, const MicroPanelSource& from, Value k, Value depth) {
  const Value first = from.k0 + k;
  if (from.axis == LaneAxis::row) {
    b_.for_loop(0, depth, 1, [&](Value step) {
      b_.for_loop(0, side, row_lanes, [&](Value r) {
        const Value row = from.row + r, mask = b_.tail_mask(from.rows - row, row_lanes);
        b_.store(to, step * side + r, (*from.load)(from.batch, row, first + step, from.axis, row_lanes, mask));
      });
    });
    return;
  }
  b_.for_loop(0, side, 1, [&](Value r) {
    const Value row = min(from.row + r, from.rows - 1);
    b_.for_loop(0, depth, row_lanes, [&](Value step) {
      const Value mask = b_.tail_mask(depth - step, row_lanes);
      b_.store_strided(to, step * side + r, side,
                       (*from.load)(from.batch, row, first + step, from.axis, row_lanes, mask));
    });
  });
}

}  // namespace lathe::cpu
