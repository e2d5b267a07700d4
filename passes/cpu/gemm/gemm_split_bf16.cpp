#include "passes/cpu/gemm/gemm_split_bf16.h"

#include <array>
#include <functional>
#include <vector>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/support/error.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

namespace {

/// Packs squares of 16 rows and 16 k of a micro-panel, two that are adjacent in k at a time.
class SplitBf16Packer {
 public:
  SplitBf16Packer(Builder& b, const GemmTile& tile, const MicroPanelSource& from, Buffer buffer, Value base)
      : b_(b), from_(from), buffer_(buffer), base_(base) {
    LATHE_ASSERT(tile.split_bf16() && from.width == 2 * side && tile.lanes == side);
  }

  void left() {
    each_pair_of_squares([&](Value block, Value row, bool ragged) {
      squares(LaneAxis::row, block, row, row * kernel::tile_depth, kernel::tile_depth, ragged);
    });
  }

  void right() {
    each_pair_of_squares([&](Value block, Value row, bool ragged) {
      squares(LaneAxis::k, block, row, row * 2, 2 * from_.width, ragged);
    });
  }

 private:
  static constexpr int side = kernel::tile_side;
  /// The first 16 k of a block, and the other 16.
  using Two = std::array<Value, 2>;

  /// block: the first k of 32, relative to k0; row: 0 or 16.
  void each_pair_of_squares(const std::function<void(Value block, Value row, bool ragged)>& body) {
    const auto blocks = [&](Value lo, Value hi, bool ragged) {
      b_.for_loop(lo, hi, kernel::tile_depth, [&](Value block) {
        b_.for_loop(0, from_.width, side, [&](Value row) { body(block, row, ragged); });
      });
    };
    const Value end = from_.depth * 2;
    const bool whole_k = known_multiple(b_, from_.k, kernel::tile_depth),
               whole_rows = known_multiple(b_, from_.rows, from_.width);
    if (whole_k && whole_rows) return blocks(b_.index(0), end, false);
    const Value inside = min(end, max(from_.k - 2 * from_.k0, 0) / kernel::tile_depth * kernel::tile_depth);
    const Value whole = whole_rows ? inside : b_.select(from_.row + from_.width <= from_.rows, inside, b_.index(0));
    blocks(b_.index(0), whole, false);
    blocks(whole, end, true);
  }

  /// Packs the rows of two squares from `position` on: row i holds 16 k of row row + i (axis row) or 16 rows at the
  /// i-th k (axis k).
  void squares(LaneAxis axis, Value block, Value row, Value position, int stride, bool ragged) {
    const auto vectors = [&](Value i) {
      Two both;
      for (int half = 0; half < 2; ++half) {
        const Value k = block + half * side;
        both[half] = from_.axis == LaneAxis::k ? of_row(row + i, k, ragged) : of_rows(row, k + i, ragged);
      }
      return both;
    };
    if (axis != from_.axis) {
      for_unrolled(b_, b_.index(0), b_.index(side), 4,
                   [&](Value i) { put(block, position + i * stride, vectors(i)); });
      return;
    }
    std::array<std::vector<Value>, 2> rows;
    for (int i = 0; i < side; ++i) {
      const Two both = vectors(b_.index(i));
      for (std::size_t half = 0; half < 2; ++half) rows[half].push_back(both[half]);
    }
    for (std::vector<Value>& square : rows) square = transpose(b_, square);
    for (std::size_t i = 0; i < side; ++i)
      put(block, position + static_cast<int>(i) * stride, {rows[0][i], rows[1][i]});
  }

  Value load(Value row, Value k, Value mask) { return (*from_.load)(from_.batch, row, k, from_.axis, side, mask); }

  Value of_row(Value r, Value from_k, bool ragged) {
    const Value row = from_.row + r, k = 2 * from_.k0 + from_k;
    if (!ragged) return load(row, k, {});
    const Value mask = b_.tail_mask(from_.k - k, side);
    return b_.select(mask, load(min(row, from_.rows - 1), k, mask), b_.constant(f32, 0, side));
  }

  Value of_rows(Value r, Value from_k, bool ragged) {
    const Value row = from_.row + r, k = 2 * from_.k0 + from_k;
    if (!ragged) return load(row, k, {});
    const Value loaded = load(row, min(k, from_.k - 1), b_.tail_mask(from_.rows - row, side));
    return b_.select(k < from_.k, loaded, b_.constant(f32, 0, side));
  }

  /// Stores two vectors, interleaved, as a row of each term of a block.
  void put(Value block, Value position, const Two& vectors) {
    const Value first = block / kernel::tile_depth * (kernel::bf16_terms * kernel::term_elements);
    store_split_bf16(b_, buffer_, base_ + first + position, vectors[0], vectors[1]);
  }

  Builder& b_;
  const MicroPanelSource& from_;
  Buffer buffer_;
  Value base_;
};

}  // namespace

void store_split_bf16(Builder& b, Buffer buffer, Value position, Value first, Value second) {
  first = first * split_scale, second = second * split_scale;
  for (int s = 0; s < kernel::bf16_terms; ++s)
    b.store(buffer, position + s * kernel::term_elements, split_bf16(b, first, second, s));
}

void emit_pack_left_split_bf16(Builder& b, const GemmTile& tile, const MicroPanelSource& from, Buffer buffer,
                               Value base) {
  SplitBf16Packer(b, tile, from, buffer, base).left();
}

void emit_pack_right_split_bf16(Builder& b, const GemmTile& tile, const MicroPanelSource& from, Buffer buffer,
                                Value base) {
  SplitBf16Packer(b, tile, from, buffer, base).right();
}

}  // namespace lathe::cpu
