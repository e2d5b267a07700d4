#include "passes/schedule/gemm_slices.h"

#include <array>
#include <functional>
#include <vector>

#include "ir/support/error.h"

namespace lathe::schedule {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

namespace {

/// Goes over squares of 16 rows and 16 k of a sliver, two that are neighbours in k at a time.
class SlicePacker {
 public:
  SlicePacker(Builder& b, const GemmTile& tile, const SliverSource& from, Buffer buffer, Value base)
      : b_(b), from_(from), buffer_(buffer), base_(base) {
    LATHE_ASSERT(tile.sliced && from.width == 2 * side && tile.lanes == side);
  }

  void left() {
    each_pair_of_squares([&](Value block, Value row, bool ragged) {
      put(block, row * kernel::tile_depth, kernel::tile_depth, squares(LaneAxis::row, row, block, ragged));
    });
  }

  void right() {
    each_pair_of_squares([&](Value block, Value row, bool ragged) {
      put(block, row * 2, 2 * from_.width, squares(LaneAxis::k, row, block, ragged));
    });
  }

 private:
  static constexpr int side = kernel::tile_side;
  /// The first 16 k of a block and the others.
  using Squares = std::array<std::vector<Value>, 2>;

  /// block: the first k of 32, counted from k0; row: 0 or 16.
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

  /// Vector i of each holds 16 k of row row + i (axis row) or 16 rows at the i-th k (axis k).
  Squares squares(LaneAxis axis, Value row, Value block, bool ragged) {
    Squares both;
    for (int half = 0; half < 2; ++half) {
      const Value k = block + half * side;
      std::vector<Value> vectors;
      for (int i = 0; i < side; ++i)
        vectors.push_back(from_.axis == LaneAxis::k ? of_row(row + i, k, ragged) : of_rows(row, k + i, ragged));
      both[static_cast<std::size_t>(half)] = axis == from_.axis ? transpose(b_, vectors) : vectors;
    }
    return both;
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

  /// Vectors of both squares, zipped, into lines of each slice of a block.
  void put(Value block, Value place, int line, const Squares& squares) {
    for (std::size_t i = 0; i < side; ++i)
      for (int s = 0; s < kernel::tile_slices; ++s) {
        const Value slice = (block / kernel::tile_depth * kernel::tile_slices + s) * kernel::slice_elements;
        b_.store(buffer_, base_ + slice + place + static_cast<int>(i) * line,
                 b_.bf16_slices(squares[0][i], squares[1][i], s));
      }
  }

  Builder& b_;
  const SliverSource& from_;
  Buffer buffer_;
  Value base_;
};

}  // namespace

void emit_pack_left_slices(Builder& b, const GemmTile& tile, const SliverSource& from, Buffer buffer, Value base) {
  SlicePacker(b, tile, from, buffer, base).left();
}

void emit_pack_right_slices(Builder& b, const GemmTile& tile, const SliverSource& from, Buffer buffer, Value base) {
  SlicePacker(b, tile, from, buffer, base).right();
}

}  // namespace lathe::schedule
