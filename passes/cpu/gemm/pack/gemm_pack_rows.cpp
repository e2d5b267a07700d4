#include <algorithm>

#include "ir/support/error.h"
#include "passes/cpu/gemm/gemm_split_bf16.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

/// Returns `lanes` rows (axis row) or k (axis k) from (row, k) on, in packed form.
Value StepLoader::load(Value row, Value k, Value mask) const {
  const Value loaded = (*from_.load)(from_.batch, row, k, from_.axis, lanes_, mask);
  return pairs_ ? b_.cast(loaded, packed_) : loaded;
}

Value StepLoader::of_rows(Value row, Value step, Value mask) const {
  const Value k = from_.k0 + step;
  if (!pairs_) return load(row, k, mask);
  const Value even = load(row, 2 * k, mask);
  if (known_multiple(b_, from_.k, 2)) return interleave(b_, even, load(row, 2 * k + 1, mask));
  const Value odd = load(row, min(2 * k + 1, from_.k - 1), mask);
  return interleave(b_, even, b_.select(2 * k + 1 < from_.k, odd, b_.constant(packed_, 0, lanes_)));
}

Value StepLoader::of_row(Value row, Value step, const Value (&masks)[2]) const {
  const Value k = from_.k0 + step;
  if (!pairs_) return load(row, k, masks[0]);
  const auto half = [&](int which) {
    const Value mask = masks[which], part = load(row, 2 * k + which * lanes_, mask);
    return mask ? b_.select(mask, part, b_.constant(packed_, 0, lanes_)) : part;
  };
  return b_.concat(half(0), half(1));
}

namespace {

class RowPacker {
 public:
  RowPacker(Builder& b, const GemmTile& tile, const MicroPanelSource& from, const RowsTarget& to)
      : b_(b), lanes_(tile.lanes), from_(from), to_(to), steps_(b, tile, from) {}

  /// Copies rows, 32 k at a time.
  void along_k() {
    const Value whole = whole_steps();
    b_.for_loop(0, from_.width, 1, [&](Value r) {
      const Value row = inside(from_.row + r);
      const auto copy = [&](Value step, const Value(&masks)[2]) { put(r, step, steps_.of_row(row, step, masks)); };
      for_unrolled(b_, b_.index(0), whole / lanes_, 2, [&](Value i) { copy(i * lanes_, {{}, {}}); });
      if (known_multiple(b_, from_.k, 2 * lanes_)) return;
      b_.if_(whole < from_.depth, [&] {
        const Value left = from_.k - 2 * (from_.k0 + whole);
        copy(whole, {b_.tail_mask(left, lanes_), b_.tail_mask(left - lanes_, lanes_)});
      });
    });
  }

  /// Transposes squares of 16 rows and 16 pairs of k in registers.
  void along_row() {
    const Value whole = whole_steps();
    b_.for_loop(0, from_.width, lanes_, [&](Value r) {
      const Value row = from_.row + r;
      const auto all = [&](Value mask) {
        b_.for_loop(0, whole, lanes_, [&](Value step) { square(r, step, mask, false); });
        if (known_multiple(b_, from_.k, 2 * lanes_)) return;
        b_.if_(whole < from_.depth, [&] { square(r, whole, mask, true); });
      };
      if (known_multiple(b_, from_.rows, lanes_) && !beyond()) return all({});
      b_.if_(row + lanes_ <= from_.rows, [&] { all({}); }, [&] { all(b_.tail_mask(from_.rows - row, lanes_)); });
    });
  }

 private:
  /// Returns the number of steps that form whole vectors of existing k.
  Value whole_steps() {
    if (known_multiple(b_, from_.k, 2 * lanes_)) return from_.depth;
    return min(from_.depth, from_.k / (2 * lanes_) * lanes_ - from_.k0);
  }

  /// Whether rows of the micro-panel may be past the last one of the operand.
  bool beyond() const { return !known_multiple(b_, from_.rows, from_.width); }
  Value inside(Value row) const { return beyond() ? min(row, from_.rows - 1) : row; }

  void square(Value r, Value step, Value mask, bool ragged) {
    std::vector<Value> pairs;
    for (int i = 0; i < lanes_; ++i) {
      const auto pair = [&] { return steps_.of_rows(from_.row + r, step + i, mask); };
      if (!ragged) {
        pairs.push_back(pair());
        continue;
      }
      const kernel::Var kept = b_.var(b_.constant(bf16, 0, 2 * lanes_));
      b_.if_(2 * (from_.k0 + step + i) < from_.k, [&] { b_.set(kept, pair()); });
      pairs.push_back(b_.get(kept));
    }
    const std::vector<Value> rows = transpose(b_, pairs, 2);
    for (int i = 0; i < lanes_; ++i) put(r + i, step, rows[i]);
  }

  void put(Value r, Value step, Value vector) { b_.store(to_.buffer, to_.base + r * to_.stride + 2 * step, vector); }

  Builder& b_;
  int lanes_;
  const MicroPanelSource& from_;
  const RowsTarget& to_;
  StepLoader steps_;
};

}  // namespace

void emit_pack_rows(Builder& b, const GemmTile& tile, const MicroPanelSource& from, const RowsTarget& to) {
  LATHE_ASSERT(tile.tiles() && from.width % tile.lanes == 0);
  if (tile.split_bf16()) return emit_pack_left_split_bf16(b, tile, from, to.buffer, to.base);
  RowPacker packer(b, tile, from, to);
  from.axis == LaneAxis::row ? packer.along_row() : packer.along_k();
}

void emit_pack_row_blocks(Builder& b, const GemmTile& tile, const PackSizes& sizes, Buffer packed, LaneAxis axis,
                          const LoadOperand& load) {
  const Value steps = steps_of_k(b, tile, sizes.k), row_blocks = b.ceil_div(sizes.rows, tile.mr);
  const int block = sizes.packing.tiled_depth;
  const Value blocks = b.ceil_div(steps, block);
  b.parallel_for(0, sizes.batch * row_blocks * blocks, 1, [&](Value task) {
    const Value k0 = task % blocks * block, row_block = task / blocks;
    const MicroPanelSource from{.batch = row_block / row_blocks,
                                .row = row_block % row_blocks * tile.mr,
                                .rows = sizes.rows,
                                .k0 = k0,
                                .depth = min(steps - k0, block),
                                .k = sizes.k,
                                .width = tile.mr,
                                .axis = axis,
                                .load = &load};
    const Value first = tile.split_bf16() ? (row_block * steps + k0) * tile.mr : row_block * tile.mr * steps + k0;
    emit_pack_rows(b, tile, from, {packed, first * (2 * tile.terms()), steps * 2});
  });
}

}  // namespace lathe::cpu
