#include "passes/lowering/attention_slices.h"

#include "passes/schedule/gemm_slices.h"

namespace lathe {

using kernel::Builder;
using kernel::Value;
using schedule::LaneAxis;

namespace {

constexpr int lanes = kernel::tile_side, block = sliced_block;
constexpr int vector_bytes = lanes * 4;
/// From one k of a sliver of 32 rows to the next.
constexpr int elements_of_k = block * kernel::tile_slices;
static_assert(block == kernel::tile_depth && kernel::slice_elements == block * block);

const schedule::GemmTile tile{.compute = f32, .lanes = lanes, .pairs = true, .tiles = true, .sliced = true};

int whole_blocks(std::int64_t elements) { return static_cast<int>((elements + block - 1) / block * block); }

Builder::TileBlock sums_block(bool continues) {
  return {.rows = block, .columns = block, .continues = continues, .sliced = true};
}

}  // namespace

Dim sliced_elements(const Dim& rows, const Dim& depth) {
  const auto whole = [](const Dim& size) {
    const auto known = size.value();
    return known ? Dim(whole_blocks(*known)) : size.unnamed() + Dim(block - 1);
  };
  return whole(rows) * whole(depth) * Dim(kernel::tile_slices);
}

// ----------------------------------------------------------------------------------------------------------- scores

SlicedScore::SlicedScore(KernelContext& context, const AttentionParts::Score& part, OperandLoader& rows,
                         OperandLoader& columns)
    : b_(context.builder), part_(part), rows_(rows), columns_(columns), depth_(whole_blocks(*part.depth.value())) {}

/// A block of an operand's rows (or columns), from `row` on, with all its depth.
schedule::SliverSource SlicedScore::sliver(Value outer, Value row, Value rows, const OperandLoader& from,
                                           const schedule::LoadOperand& load) const {
  return {.batch = outer,
          .row = row,
          .rows = rows,
          .k0 = b_.index(0),
          .depth = b_.index(depth_ / 2),
          .k = b_.index(*part_.depth.value()),
          .width = block,
          .axis = from.axis(),
          .load = &load};
}

void SlicedScore::stage_columns(Value outer, Value columns) {
  const schedule::LoadOperand load = columns_.callback();
  b_.for_loop(0, columns, block, [&](Value column) {
    const schedule::SliverSource from = sliver(outer, column, columns, columns_, load);
    emit_pack_left_slices(b_, tile, from, column_slices_, column * (depth_ * kernel::tile_slices));
  });
}

void SlicedScore::pack_rows(const StripPlace& place, int vectors, Value rows) {
  const schedule::LoadOperand load = rows_.callback();
  b_.for_loop(0, min(rows - place.row, vectors * lanes), block, [&](Value row) {
    const schedule::SliverSource from = sliver(place.outer, place.row + row, rows, rows_, load);
    emit_pack_right_slices(b_, tile, from, row_slices_, row * (depth_ * kernel::tile_slices));
  });
}

void SlicedScore::multiply(const ScratchMatrix& slot, const StripPlace& place, int vectors,
                           const Builder::Body& ahead) {
  b_.for_loop(place.lo, place.hi, block, [&](Value column) {
    ahead(column);
    for (int v = 0; v < vectors; v += 2) {
      const auto multiply = [&] {
        b_.tile_mma(sums_block(false), {slot.buffer, column * slot.stride + v * lanes, slot.stride},
                    {column_slices_, column * (depth_ * kernel::tile_slices), block},
                    {row_slices_, v * lanes * depth_ * kernel::tile_slices, 2 * block}, depth_);
      };
      place.ends.empty() ? multiply() : b_.if_(column < place.end(v + 1), multiply);
    }
  });
}

// ------------------------------------------------------------------------------------------------------------- sums

SlicedEnd::SlicedEnd(KernelContext& context, const AttentionParts::End& part, OperandLoader& other, int strip_rows)
    : b_(context.builder), part_(part), other_(other), strip_rows_(strip_rows), depth_(whole_depth(part)) {}

int SlicedEnd::whole_depth(const AttentionParts::End& part) { return whole_blocks(*part.depth.value()); }

void SlicedEnd::each_depth(const std::function<void(Value depth)>& body) { b_.for_loop(0, depth_, block, body); }

void SlicedEnd::stage_columns(Value outer, Value columns) {
  const schedule::LoadOperand load = other_.turned_callback();
  each_depth([&](Value depth) {
    const schedule::SliverSource from{.batch = outer,
                                      .row = depth,
                                      .rows = b_.index(*part_.depth.value()),
                                      .k0 = b_.index(0),
                                      .depth = scratch_.columns / 2,
                                      .k = columns,
                                      .width = block,
                                      .axis = other_.turned_axis(),
                                      .load = &load};
    emit_pack_left_slices(b_, tile, from, scratch_.other, depth * scratch_.columns * kernel::tile_slices);
  });
}

/// Vectors of a block of columns. Unless it is whole, zeros stand for columns that a vector does not look at and,
/// where that counts, for rows beyond the last.
SlicedEnd::Vector SlicedEnd::vectors(const ScratchMatrix& slot, const StripPlace& place, Value count, bool whole,
                                     bool masks_rows) const {
  return [this, &slot, &place, count, whole, masks_rows](Value column, int v) {
    const Value found = b_.load(slot.buffer, column * slot.stride + v * lanes, lanes, {}, vector_bytes);
    if (whole) return found;
    Value inside = b_.broadcast(column < place.end(v), lanes);
    if (masks_rows) inside = inside && b_.tail_mask(count - v * lanes, lanes);
    return b_.select(inside, found, b_.constant(f32, 0, lanes));
  };
}

/// Two vectors, zipped, into the same line of each slice of a block.
void SlicedEnd::put(Value place, Value first, Value second) {
  for (int s = 0; s < kernel::tile_slices; ++s)
    b_.store(scratch_.values, place + s * kernel::slice_elements, b_.bf16_slices(first, second, s));
}

/// Columns lo .. hi of half a strip as the right operand: lines of 32 rows, a column beside the one 16 further on.
void SlicedEnd::columns_to_right(const ScratchMatrix& slot, const StripPlace& place, int half, Value lo, Value hi) {
  const auto columns = [&](Value column, bool whole) {
    const Vector vector = vectors(slot, place, {}, whole, false);
    b_.for_loop(0, lanes, 1, [&](Value i) {
      for (int v = 0; v < 2; ++v) {
        const int number = 2 * half + v;
        put((column - lo) * elements_of_k + i * (2 * block) + v * block, vector(column + i, number),
            vector(column + i + lanes, number));
      }
    });
  };
  b_.for_loop(lo, hi, block, [&](Value column) {
    b_.if_(column + block <= place.end(2 * half), [&] { columns(column, true); }, [&] { columns(column, false); });
  });
}

void SlicedEnd::sum_over_columns(const ScratchMatrix& slot, const StripPlace& place, Value count, Value at,
                                 bool begun) {
  const ScratchMatrix& turned = *scratch_.turned;
  b_.for_loop(0, b_.index(depth_) * turned.stride, lanes,
              [&](Value i) { b_.store(turned.buffer, i, b_.constant(f32, 0, lanes), {}, vector_bytes); });
  b_.for_loop(place.lo, place.hi, column_block, [&](Value lo) {
    for (int half = 0; half < strip_rows_ / block; ++half) {
      const Value hi = b_.round_up(min(min(lo + column_block, place.hi), place.end(2 * half + 1)), block);
      b_.if_(count > half * block && lo < hi, [&] {
        columns_to_right(slot, place, half, lo, hi);
        each_depth([&](Value depth) {
          b_.tile_mma(sums_block(true), {turned.buffer, depth * turned.stride + half * block, turned.stride},
                      {scratch_.other, depth * scratch_.columns * kernel::tile_slices + lo * elements_of_k, block},
                      {scratch_.values, 0, 2 * block}, hi - lo);
        });
      });
    }
  });
  turn(count, at, begun);
}

/// sums[at + row][depth] = turned[depth][row], or += where they are begun.
void SlicedEnd::turn(Value count, Value at, bool begun) {
  const ScratchMatrix &turned = *scratch_.turned, &sums = scratch_.sums;
  b_.for_loop(0, count, lanes, [&](Value row) {
    b_.for_loop(0, depth_, lanes, [&](Value depth) {
      std::vector<Value> square;
      for (int i = 0; i < lanes; ++i)
        square.push_back(b_.load(turned.buffer, (depth + i) * turned.stride + row, lanes, {}, vector_bytes));
      square = schedule::transpose(b_, square);
      for (int i = 0; i < lanes; ++i) {
        const Value to = (at + row + i) * sums.stride + depth;
        Value sum = square[static_cast<std::size_t>(i)];
        if (begun) sum = b_.load(sums.buffer, to, lanes, {}, vector_bytes) + sum;
        b_.store(sums.buffer, to, sum, {}, vector_bytes);
      }
    });
  });
}

/// A block of columns of half a strip as the left operand: lines of 32 rows for one column after another, a row
/// beside the one 16 further on.
void SlicedEnd::rows_to_left(const ScratchMatrix& slot, const StripPlace& place, int half, Value column,
                             Value count) {
  const auto rows = [&](bool whole) {
    const Vector vector = vectors(slot, place, count, whole, true);
    schedule::for_unrolled(b_, b_.index(0), b_.index(block), 2, [&](Value i) {
      put(i * block + half * block * elements_of_k, vector(column + i, 2 * half), vector(column + i, 2 * half + 1));
    });
  };
  const Value is_whole = column + block <= place.end(2 * half) && count >= (half + 1) * block;
  b_.if_(is_whole, [&] { rows(true); }, [&] { rows(false); });
}

void SlicedEnd::sum_over_rows(const ScratchMatrix& slot, const StripPlace& place, Value count) {
  const schedule::LoadOperand load = other_.turned_callback();
  const Value whole = b_.round_up(count, block);
  each_depth([&](Value depth) {
    const schedule::SliverSource from{.batch = place.outer,
                                      .row = depth,
                                      .rows = b_.index(*part_.depth.value()),
                                      .k0 = place.row / 2,
                                      .depth = whole / 2,
                                      .k = place.row + count,
                                      .width = block,
                                      .axis = other_.turned_axis(),
                                      .load = &load};
    emit_pack_right_slices(b_, tile, from, scratch_.other, depth * (strip_rows_ * kernel::tile_slices));
  });
  b_.for_loop(place.lo, place.hi, block, [&](Value column) {
    // Rows of the first half may all have left this block out.
    const Value first = b_.select(column < place.end(1), b_.index(0), b_.index(block));
    for (int half = 0; half < strip_rows_ / block; ++half)
      b_.if_(column < place.end(2 * half + 1) && count > half * block,
             [&] { rows_to_left(slot, place, half, column, count); });
    each_depth([&](Value depth) {
      b_.tile_mma(sums_block(true),
                  {scratch_.sums.buffer, column * scratch_.sums.stride + depth, scratch_.sums.stride},
                  {scratch_.values, first * elements_of_k, block},
                  {scratch_.other, depth * (strip_rows_ * kernel::tile_slices) + first * elements_of_k, 2 * block},
                  max(whole - first, 0));
    });
  });
}

}  // namespace lathe
