#include "passes/cpu/gemm/pack/gemm_pack.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/support/error.h"
#include "passes/cpu/gemm/gemm_split_bf16.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

bool known_multiple(const Builder& b, Value value, std::int64_t step) {
  const auto known = b.constant_value(value);
  return known && *known % step == 0;
}

void for_unrolled(Builder& b, Value lo, Value hi, int factor, const Builder::Body& body) {
  const Value main = lo + (hi - lo) / factor * factor;
  b.for_loop(lo, main, factor, [&](Value i) {
    for (int u = 0; u < factor; ++u) body(i + u);
  });
  if (!known_multiple(b, hi - lo, factor)) b.for_loop(main, hi, 1, body);
}

Value sums_of_lanes(Builder& b, std::vector<Value> vectors) {
  LATHE_ASSERT(!vectors.empty() && static_cast<int>(vectors.size()) == vectors[0].type.lanes);
  // Each vector holds groups of lanes, one group per sum; a level halves the groups and doubles their number.
  for (int group = vectors[0].type.lanes; group > 1; group /= 2) {
    std::vector<Value> next;
    for (std::size_t i = 0; i < vectors.size(); i += 2) {
      const auto half = [&](int second) {
        std::vector<int> units;
        for (int at = 0; at < 2 * vectors[i].type.lanes / (group / 2); at += 2) units.push_back(at + second);
        return pick_units(b, vectors[i], vectors[i + 1], group / 2, units);
      };
      next.push_back(half(0) + half(1));
    }
    vectors = std::move(next);
  }
  return vectors[0];
}

Value interleave(Builder& b, Value even, Value odd) {
  std::vector<int> lanes;
  for (int i = 0; i < even.type.lanes; ++i) lanes.insert(lanes.end(), {i, even.type.lanes + i});
  return b.shuffle(even, odd, std::move(lanes));
}

namespace {

class MicroPanelPacker {
 public:
  MicroPanelPacker(Builder& b, const GemmTile& tile, const MicroPanelSource& from, const MicroPanelTarget& to)
      : b_(b),
        lanes_(tile.lanes),
        width_(from.width),
        groups_((from.width + tile.lanes - 1) / tile.lanes),
        from_(from),
        to_(to),
        pairs_(tile.pairs()),
        packed_(tile.packed()),
        steps_(b, tile, from) {}

  void along_row() {
    const Value full = from_.row + groups_ * lanes_ <= from_.rows;
    const auto copy = [&](bool masked) {
      std::vector<Value> masks(static_cast<std::size_t>(groups_));
      for (int g = 0; masked && g < groups_; ++g)
        masks[g] = b_.tail_mask(from_.rows - from_.row - g * lanes_, lanes_);
      for_unrolled(b_, b_.index(0), from_.depth, masked ? 1 : 4, [&](Value k) {
        for (int g = 0; g < groups_; ++g)
          put(at(k, g * lanes_), width_ - g * lanes_, steps_.of_rows(from_.row + g * lanes_, k, masks[g]));
      });
    };
    if (known_multiple(b_, from_.rows, groups_ * lanes_) && width_ == groups_ * lanes_) return copy(false);
    b_.if_(full, [&] { copy(false); }, [&] { copy(true); });
  }

  /// Packs units of rows through register transposes; rows past the last one repeat it. A unit is a
  /// lanes x lanes square if the micro-panel consists of such squares, otherwise the whole micro-panel. Remaining
  /// steps of k are masked.
  void along_k() {
    const int unit = width_ % lanes_ == 0 ? lanes_ : width_;
    const bool whole = known_multiple(b_, from_.rows, width_);
    const Value valid = whole ? b_.index(width_) : min(from_.rows - from_.row, width_);
    const bool half = pairs_ && !known_multiple(b_, from_.k, 2);  // the last pair may be incomplete
    const Value even = (half ? min(from_.depth, from_.k / 2 - from_.k0) : from_.depth) / lanes_ * lanes_;
    const bool even_k = !half && known_multiple(b_, from_.depth, lanes_);
    b_.for_loop(0, width_, unit, [&](Value row) {
      const auto squares = [&](bool inside) {
        b_.for_loop(0, even, lanes_, [&](Value k) { transposed(row, k, unit, {.inside = inside}); });
        if (even_k) return;
        if (const auto depth = b_.constant_value(from_.depth); depth && !half)
          return transposed(row, even, unit, {.inside = inside, .steps = static_cast<int>(*depth % lanes_)});
        b_.if_(even < from_.depth,
               [&] { transposed(row, even, unit, {.inside = inside, .left = from_.depth - even}); });
      };
      if (whole) return squares(true);
      b_.if_(row + unit <= valid, [&] { squares(true); }, [&] { squares(false); });
    });
  }

 private:
  Value at(Value k, int row) const { return to_.base + k * width_ + row; }

  /// Stores the first `left` elements (or pairs) of a vector, at once or in pieces.
  void put(Value position, int left, Value vector) const {
    const int unit = pairs_ ? 2 : 1;
    if (left >= lanes_ || to_.overrun) return b_.store(to_.buffer, position * unit, vector);
    for (int first = 0, piece = lanes_; piece > 0; piece /= 2) {
      if (!(left & piece)) continue;
      b_.store(to_.buffer, (position + first) * unit, b_.slice(vector, first * unit, piece * unit));
      first += piece;
    }
  }

  /// Shape of a square: whether all its rows exist, and its number of steps of k, which is known or `left` at run
  /// time.
  struct Square {
    bool inside = true;
    int steps = 0;  ///< 0: lanes_, or `left`
    Value left = {};
  };

  /// Packs rows row .. row + unit, k .. k + lanes. In a micro-panel of several units, a unit is one vector. Stores
  /// ascend, so that the next step overwrites the excess of a vector.
  void transposed(Value row, Value k, int unit, const Square& square) const {
    Value masks[2];
    if (square.steps > 0 || square.left) {
      const Value left = pairs_ ? from_.k - 2 * (from_.k0 + k) : square.left ? square.left : b_.index(square.steps);
      masks[0] = b_.tail_mask(left, lanes_);
      if (pairs_) masks[1] = b_.tail_mask(left - lanes_, lanes_);
    }
    std::vector<std::vector<Value>> columns;  // per vector of rows, lanes_ of them
    for (int first = 0; first < unit; first += lanes_) {
      std::vector<Value> rows;
      for (int i = first; i < first + lanes_; ++i) {
        const Value at = from_.row + row + i;
        rows.push_back(i < unit ? steps_.of_row(square.inside ? at : min(at, from_.rows - 1), k, masks)
                                : b_.constant(packed_, 0, pairs_ ? 2 * lanes_ : lanes_));
      }
      columns.push_back(transpose(b_, rows, pairs_ ? 2 : 1));
    }
    for (int j = 0; j < (square.steps > 0 ? square.steps : lanes_); ++j) {
      const auto store = [&] {
        for (int first = 0; first < unit; first += lanes_)
          put(at(k + j, 0) + row + first, unit == width_ ? width_ - first : lanes_, columns[first / lanes_][j]);
      };
      if (square.left && j > 0)
        b_.if_(square.left > j, store);
      else
        store();
    }
  }

  Builder& b_;
  int lanes_, width_, groups_;
  const MicroPanelSource& from_;
  const MicroPanelTarget& to_;
  bool pairs_;
  DType packed_;
  StepLoader steps_;
};

/// Stores zeros at steps lo .. hi.
void pack_zeros(Builder& b, const GemmTile& tile, const MicroPanelSource& from, const MicroPanelTarget& to, Value lo,
                Value hi) {
  b.for_loop(lo, hi, 1, [&](Value step) {
    for (int r = 0; r < from.width; r += tile.lanes)
      b.store(to.buffer, (to.base + step * from.width + r) * 2, b.constant(tile.packed(), 0, 2 * tile.lanes));
  });
}

}  // namespace

Value steps_of_k(Builder& b, const GemmTile& tile, Value k) {
  if (tile.tiles()) return b.round_up(k, kernel::tile_depth) / 2;
  return tile.pairs() ? b.ceil_div(k, 2) : k;
}

void emit_pack_micro_panel(Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                           const MicroPanelTarget& to) {
  if (tile.split_bf16())
    return emit_pack_right_split_bf16(b, tile, from, to.buffer, to.base * (2 * kernel::bf16_terms));
  MicroPanelSource filled = from;
  if (tile.tiles() && !known_multiple(b, from.k, kernel::tile_depth))
    filled.depth = min(from.depth, b.ceil_div(from.k, 2) - from.k0);
  MicroPanelPacker packer(b, tile, filled, to);
  from.axis == LaneAxis::row ? packer.along_row() : packer.along_k();
  if (tile.tiles() && !known_multiple(b, from.k, kernel::tile_depth))
    pack_zeros(b, tile, from, to, filled.depth, from.depth);
}

namespace {

/// Packs micro-panels of `width` rows, parallel over batch x groups of micro-panels x blocks of k. Along k, a
/// micro-panel reads its rows from end to end. Along row, a few steps of k are packed for many micro-panels in turn,
/// so that cache lines are read in memory order.
void emit_pack(Builder& b, const GemmTile& tile, const PackSizes& sizes, Buffer packed, LaneAxis axis,
               const LoadOperand& load, int width) {
  LATHE_ASSERT(packed.dtype == tile.packed());
  const bool along_row = axis == LaneAxis::row;
  const int group = along_row ? std::max(sizes.packing.rows / width, 1) : 1,
            step = along_row ? sizes.packing.steps : tile.kc;
  const Value steps = steps_of_k(b, tile, sizes.k);
  const Value micro_panels = b.ceil_div(sizes.rows, width), blocks = b.ceil_div(steps, step);
  const Value groups = b.ceil_div(micro_panels, group);
  b.parallel_for(0, sizes.batch * groups * blocks, 1, [&](Value task) {
    const Value k0 = task % blocks * step, remainder = task / blocks;
    const Value first = remainder % groups * group, batch = remainder / groups;
    b.for_loop(first, min(first + group, micro_panels), 1, [&](Value micro_panel) {
      const MicroPanelSource from{.batch = batch,
                                  .row = micro_panel * width,
                                  .rows = sizes.rows,
                                  .k0 = k0,
                                  .depth = min(steps - k0, step),
                                  .k = sizes.k,
                                  .width = width,
                                  .axis = axis,
                                  .load = &load};
      emit_pack_micro_panel(b, tile, from,
                            {.buffer = packed, .base = ((batch * micro_panels + micro_panel) * steps + k0) * width});
    });
  });
}

}  // namespace

void emit_pack_lhs(Builder& b, const GemmTile& tile, const PackSizes& sizes, Buffer packed, LaneAxis axis,
                   const LoadOperand& load) {
  tile.tiles() ? emit_pack_row_blocks(b, tile, sizes, packed, axis, load)
               : emit_pack(b, tile, sizes, packed, axis, load, tile.mr);
}

void emit_pack_rhs(Builder& b, const GemmTile& tile, const PackSizes& sizes, Buffer packed, LaneAxis axis,
                   const LoadOperand& load) {
  emit_pack(b, tile, sizes, packed, axis, load, tile.panel_step());
}

void emit_copy_rows(Builder& b, const GemmTile& tile, const PackSizes& sizes, Buffer copy, LaneAxis axis,
                    const LoadOperand& load) {
  LATHE_ASSERT(axis == LaneAxis::k);
  const int lanes = tile.lanes;
  const Value whole = sizes.k / lanes * lanes;
  b.parallel_for(0, sizes.batch * sizes.rows, 1, [&](Value task) {
    const auto put = [&](Value k, Value mask) {
      const Value elements = load(task / sizes.rows, task % sizes.rows, k, LaneAxis::k, lanes, mask);
      b.store(copy, task * sizes.k + k, elements, mask);
    };
    for_unrolled(b, b.index(0), whole / lanes, 2, [&](Value i) { put(i * lanes, {}); });
    if (known_multiple(b, sizes.k, lanes)) return;
    b.if_(whole < sizes.k, [&] { put(whole, b.tail_mask(sizes.k - whole, lanes)); });
  });
}

namespace {
PackedExtent extent(const GemmTile& tile, int micro_panel) {
  return {.extra_rows = micro_panel - 1,
          .micro_panel = micro_panel,
          .unit_of_k = tile.tiles()   ? kernel::tile_depth
                       : tile.pairs() ? 2
                                      : 1,
          .terms = tile.terms()};
}
}  // namespace

PackedExtent packed_lhs_extent(const GemmTile& tile) { return extent(tile, tile.mr); }
PackedExtent packed_rhs_extent(const GemmTile& tile) { return extent(tile, tile.panel_step()); }

}  // namespace lathe::cpu
