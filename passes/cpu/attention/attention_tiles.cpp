#include "passes/cpu/attention/attention_tiles.h"

#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/gemm/gemm_split_bf16.h"

namespace lathe::cpu {

using kernel::Builder;
using kernel::Value;

namespace {

constexpr int lanes = kernel::tile_side, block = tile_block;
constexpr int vector_bytes = lanes * 4;  // of f32
static_assert(block == kernel::tile_depth && kernel::term_elements == block * block);

int whole_blocks(std::int64_t elements) { return static_cast<int>((elements + block - 1) / block * block); }

/// Elements from one k to the next in a block of 32 rows.
int elements_of_k(const GemmTile& tile) { return block * tile.terms(); }

kernel::TileBlock sums_block(const GemmTile& tile, bool continues) {
  return {.rows = block, .columns = block, .continues = continues, .split_bf16 = tile.split_bf16()};
}

}  // namespace

GemmTile tile_of(DType dtype) {
  using Operands = GemmTile::Operands;
  return {.compute = f32, .lanes = lanes, .operands = dtype == f32 ? Operands::split_tiles : Operands::tiles};
}

Dim tiled_elements(const Dim& rows, const Dim& depth, DType dtype) {
  const auto whole = [](const Dim& size) {
    const auto known = size.value();
    return known ? Dim(whole_blocks(*known)) : size.unnamed() + Dim(block - 1);
  };
  return whole(rows) * whole(depth) * Dim(tile_of(dtype).terms());
}

// ----------------------------------------------------------------------------------------------------------- scores

TiledScore::TiledScore(KernelContext& context, const AttentionParts::Score& part, OperandLoader& rows,
                       OperandLoader& columns)
    : b_(context.builder),
      part_(part),
      tile_(tile_of(dtype())),
      rows_(rows),
      columns_(columns),
      depth_(whole_blocks(*part.depth.value())) {}

/// Returns a block of an operand's rows (or columns), from `row` on, with the whole depth.
MicroPanelSource TiledScore::micro_panel(Value outer, Value row, Value rows, const OperandLoader& from,
                                         const LoadOperand& load) const {
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

void TiledScore::stage_columns(Value outer, Value columns) {
  const LoadOperand load = columns_.callback();
  b_.for_loop(0, columns, block, [&](Value column) {
    const MicroPanelSource from = micro_panel(outer, column, columns, columns_, load);
    emit_pack_rows(b_, tile_, from, {packed_columns_, column * (depth_ * tile_.terms()), b_.index(depth_)});
  });
}

void TiledScore::pack_rows(const RowBlockPosition& row_block, int vectors, Value rows) {
  const LoadOperand load = rows_.callback();
  b_.for_loop(0, min(rows - row_block.row, vectors * lanes), block, [&](Value row) {
    const MicroPanelSource from = micro_panel(row_block.outer, row_block.row + row, rows, rows_, load);
    emit_pack_micro_panel(b_, tile_, from, {.buffer = packed_rows_, .base = row * (depth_ / 2)});
  });
}

void TiledScore::multiply(const ScratchMatrix& slot, const RowBlockPosition& row_block, int vectors, Value rows,
                          Value columns, const Builder::Body& prefetch) {
  const int of_row = depth_ * tile_.terms();
  const LoadOperand load_rows = rows_.callback(), load_columns = columns_.callback();
  b_.for_loop(row_block.lo, row_block.hi, block, [&](Value column) {
    prefetch(column);
    for (int v = 0; v < vectors; v += 2) {
      const auto multiply = [&] {
        const Value first = column * slot.stride + v * lanes;
        tile_mma(b_, sums_block(tile_, false), {slot.buffer, first, slot.stride},
                 {packed_columns_, column * of_row, tile_.split_bf16() ? block : depth_},
                 {packed_rows_, v * lanes * of_row, 2 * block}, depth_);
        if (!tile_.split_bf16()) return;
        const Value row = row_block.row + v * lanes;
        MicroPanelSource left = micro_panel(row_block.outer, column, columns, columns_, load_columns),
                         right = micro_panel(row_block.outer, row, rows, rows_, load_rows);
        left.depth = right.depth = left.k;
        exact_->finish_sums({slot.buffer, first, slot.stride, columns - column, rows - row}, left, right);
      };
      row_block.row_ends.empty() ? multiply() : b_.if_(column < row_block.end(v + 1), multiply);
    }
  });
}

// ------------------------------------------------------------------------------------------------------------- sums

TiledOutput::TiledOutput(KernelContext& context, const AttentionParts::OutputProduct& part, OperandLoader& other,
                         int block_rows, int column_block)
    : b_(context.builder),
      part_(part),
      tile_(tile_of(dtype())),
      other_(other),
      block_rows_(block_rows),
      column_block_(column_block),
      depth_(whole_depth(part)) {}

int TiledOutput::whole_depth(const AttentionParts::OutputProduct& part) { return whole_blocks(*part.depth.value()); }

void TiledOutput::each_depth(const std::function<void(Value depth)>& body) { b_.for_loop(0, depth_, block, body); }

void TiledOutput::stage_columns(Value outer, Value columns) {
  const LoadOperand load = other_.transposed_callback();
  each_depth([&](Value depth) {
    const MicroPanelSource from{.batch = outer,
                                .row = depth,
                                .rows = b_.index(*part_.depth.value()),
                                .k0 = b_.index(0),
                                .depth = scratch_.columns / 2,
                                .k = columns,
                                .width = block,
                                .axis = other_.transposed_axis(),
                                .load = &load};
    emit_pack_rows(b_, tile_, from, other_columns(depth, b_.index(0)));
  });
}

/// Returns the packed operand for a block of the depth, from column `lo` on.
RowsTarget TiledOutput::other_columns(Value depth, Value lo) const {
  const Value first = depth * scratch_.columns;
  if (!tile_.split_bf16()) return {scratch_.other, first + lo, scratch_.columns};
  return {scratch_.other, first * tile_.terms() + lo * elements_of_k(tile_), b_.index(block)};
}

/// Returns a loader for vectors of a block of columns. Unless the block is `whole`, columns that a vector skips read
/// as zero and, if `masks_rows`, so do rows past the last one.
TiledOutput::Vector TiledOutput::vectors(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count,
                                         bool whole, bool masks_rows) const {
  return [this, &slot, &row_block, count, whole, masks_rows](Value column, int v) {
    const DType dtype = slot.buffer.dtype;
    const int bytes = lanes * static_cast<int>(size_in_bytes(dtype));
    const Value found = b_.load(slot.buffer, column * slot.stride + v * lanes, lanes, {}, bytes);
    if (whole) return found;
    Value inside = b_.broadcast(column < row_block.end(v), lanes);
    if (masks_rows) inside = inside && b_.tail_mask(count - v * lanes, lanes);
    return b_.select(inside, found, b_.constant(dtype, 0, lanes));
  };
}

/// Stores two vectors, interleaved, as a row of a block; for split bf16 as that row of the block of each term.
void TiledOutput::put(Value position, Value first, Value second) {
  if (!tile_.split_bf16()) return b_.store(*scratch_.values, position, interleave(b_, first, second));
  store_split_bf16(b_, *scratch_.values, position, first, second);
}

/// Packs columns lo .. hi of half a row block as the right operand: 32 rows side by side. A bf16 column is paired
/// with the next one, a column in terms with the one 16 further on.
void TiledOutput::columns_to_right(const ScratchMatrix& slot, const RowBlockPosition& row_block, int half, Value lo,
                                   Value hi) {
  const auto columns = [&](Value column, bool whole) {
    const Vector vector = vectors(slot, row_block, {}, whole, false);
    b_.for_loop(0, lanes, 1, [&](Value i) {
      const Value first = column + (tile_.split_bf16() ? i : 2 * i),
                  second = first + (tile_.split_bf16() ? lanes : 1);
      for (int v = 0; v < 2; ++v)
        put((column - lo) * elements_of_k(tile_) + i * (2 * block) + v * block, vector(first, 2 * half + v),
            vector(second, 2 * half + v));
    });
  };
  b_.for_loop(lo, hi, block, [&](Value column) {
    b_.if_(
        column + block <= row_block.end(2 * half), [&] { columns(column, true); }, [&] { columns(column, false); });
  });
}

void TiledOutput::sum_over_columns(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count,
                                   Value at, bool begun) {
  const ScratchMatrix& transposed = *scratch_.transposed;
  b_.for_loop(0, b_.index(depth_) * transposed.stride, lanes,
              [&](Value i) { b_.store(transposed.buffer, i, b_.constant(f32, 0, lanes), {}, vector_bytes); });
  b_.for_loop(row_block.lo, row_block.hi, column_block_, [&](Value lo) {
    for (int half = 0; half < block_rows_ / block; ++half) {
      const Value hi = b_.round_up(min(min(lo + column_block_, row_block.hi), row_block.end(2 * half + 1)), block);
      b_.if_(count > half * block && lo < hi, [&] {
        columns_to_right(slot, row_block, half, lo, hi);
        each_depth([&](Value depth) {
          const RowsTarget other = other_columns(depth, lo);
          tile_mma(b_, sums_block(tile_, true),
                   {transposed.buffer, depth * transposed.stride + half * block, transposed.stride},
                   {other.buffer, other.base, other.stride}, {*scratch_.values, 0, 2 * block}, hi - lo);
        });
      });
    }
  });
  if (tile_.split_bf16()) finish_columns(slot, row_block, count);
  transpose_sums(count, at, begun);
}

/// Returns a loader of a row block's values, as an operand of 32 rows (`by_column`: of 32 columns). Columns that a
/// vector of rows skips read as zero.
LoadOperand TiledOutput::values(const ScratchMatrix& slot, const RowBlockPosition& row_block, bool by_column) const {
  return [this, &slot, &row_block, by_column](Value, Value row, Value k, LaneAxis, int, Value) {
    const Value column = by_column ? row : k, in_row_block = by_column ? k : row;
    Value end = row_block.end(0);
    for (int v = 1; v < block_rows_ / lanes && !row_block.row_ends.empty(); ++v)
      end = b_.select(in_row_block < v * lanes, end, row_block.end(v));
    const Value found = b_.load(slot.buffer, column * slot.stride + in_row_block, lanes, {}, vector_bytes);
    return b_.select(b_.broadcast(column < end, lanes), found, b_.constant(f32, 0, lanes));
  };
}

void TiledOutput::finish_columns(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count) {
  const ScratchMatrix& transposed = *scratch_.transposed;
  const LoadOperand others = other_.transposed_callback(), own = values(slot, row_block, false);
  const Value deep = b_.index(*part_.depth.value());
  for (int half = 0; half < block_rows_ / block; ++half) {
    const Value hi = row_block.end(2 * half + 1), columns = hi - row_block.lo;
    b_.if_(count > half * block && columns > 0, [&] {
      each_depth([&](Value depth) {
        scratch_.exact->finish_sums({transposed.buffer, depth * transposed.stride + half * block, transposed.stride,
                                     deep - depth, count - half * block},
                                    {.batch = row_block.outer,
                                     .row = depth,
                                     .rows = deep,
                                     .k0 = row_block.lo,
                                     .depth = columns,
                                     .k = hi,
                                     .axis = other_.transposed_axis(),
                                     .load = &others},
                                    {.batch = row_block.outer,
                                     .row = b_.index(half * block),
                                     .rows = b_.index(block_rows_),
                                     .k0 = row_block.lo,
                                     .depth = columns,
                                     .k = hi,
                                     .axis = LaneAxis::row,
                                     .load = &own});
      });
    });
  }
}

/// sums[at + row][depth] = transposed[depth][row]; adds to the existing sums if `begun`.
void TiledOutput::transpose_sums(Value count, Value at, bool begun) {
  const ScratchMatrix &transposed = *scratch_.transposed, &sums = scratch_.sums;
  b_.for_loop(0, count, lanes, [&](Value row) {
    b_.for_loop(0, depth_, lanes, [&](Value depth) {
      std::vector<Value> square;
      for (int i = 0; i < lanes; ++i)
        square.push_back(b_.load(transposed.buffer, (depth + i) * transposed.stride + row, lanes, {}, vector_bytes));
      square = transpose(b_, square);
      for (int i = 0; i < lanes; ++i) {
        const Value to = (at + row + i) * sums.stride + depth;
        Value sum = square[i];
        if (begun) sum = b_.load(sums.buffer, to, lanes, {}, vector_bytes) + sum;
        b_.store(sums.buffer, to, sum, {}, vector_bytes);
      }
    });
  });
}

/// Packs a block of columns of half a row block as split bf16, the left operand. Each column has the terms of 32
/// rows; a row is paired with the one 16 further on.
void TiledOutput::rows_to_left(const ScratchMatrix& slot, const RowBlockPosition& row_block, int half, Value column,
                               Value count) {
  const auto rows = [&](bool whole) {
    const Vector vector = vectors(slot, row_block, count, whole, true);
    for_unrolled(b_, b_.index(0), b_.index(block), 2, [&](Value i) {
      put(i * block + half * block * elements_of_k(tile_), vector(column + i, 2 * half),
          vector(column + i, 2 * half + 1));
    });
  };
  const Value is_whole = column + block <= row_block.end(2 * half) && count >= (half + 1) * block;
  b_.if_(is_whole, [&] { rows(true); }, [&] { rows(false); });
}

/// Prepares such a block of plain bf16, which is read in place: zeros skipped columns and rows past the last one.
void TiledOutput::clear_unseen(const ScratchMatrix& slot, const RowBlockPosition& row_block, int half, Value column,
                               Value count) {
  const Vector vector = vectors(slot, row_block, count, false, true);
  b_.if_(column + block > row_block.end(2 * half) || count < (half + 1) * block, [&] {
    b_.for_loop(column, column + block, 1, [&](Value c) {
      for (int v = 2 * half; v < 2 * half + 2; ++v)
        b_.store(slot.buffer, c * slot.stride + v * lanes, vector(c, v), {}, vector_bytes / 2);
    });
  });
}

void TiledOutput::sum_over_rows(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count) {
  const LoadOperand load = other_.transposed_callback();
  const Value whole = b_.round_up(count, block);
  each_depth([&](Value depth) {
    const MicroPanelSource from{.batch = row_block.outer,
                                .row = depth,
                                .rows = b_.index(*part_.depth.value()),
                                .k0 = row_block.row / 2,
                                .depth = whole / 2,
                                .k = row_block.row + count,
                                .width = block,
                                .axis = other_.transposed_axis(),
                                .load = &load};
    emit_pack_micro_panel(b_, tile_, from, {.buffer = scratch_.other, .base = depth * (block_rows_ / 2)});
  });
  b_.for_loop(row_block.lo, row_block.hi, block,
              [&](Value column) { rows_of_block(slot, row_block, column, count); });
}

/// Computes the sums of a block of columns over a row block's rows.
void TiledOutput::rows_of_block(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value column,
                                Value count) {
  // All rows of the first half may skip this block.
  const Value first = b_.select(column < row_block.end(1), b_.index(0), b_.index(block));
  for (int half = 0; half < block_rows_ / block; ++half)
    b_.if_(column < row_block.end(2 * half + 1) && count > half * block, [&] {
      packs_values() ? rows_to_left(slot, row_block, half, column, count)
                     : clear_unseen(slot, row_block, half, column, count);
    });
  const Value first_element = first * elements_of_k(tile_), deep = max(b_.round_up(count, block) - first, 0);
  const Builder::Rows left = packs_values() ? Builder::Rows{*scratch_.values, first_element, block}
                                            : Builder::Rows{slot.buffer, column * slot.stride + first, slot.stride};
  each_depth([&](Value depth) {
    const ScratchMatrix& sums = scratch_.sums;
    const Value at = column * sums.stride + depth;
    const Builder::Rows right{scratch_.other, depth * (block_rows_ * tile_.terms()) + first_element, 2 * block};
    if (!tile_.split_bf16())
      return tile_mma(b_, sums_block(tile_, true), {sums.buffer, at, sums.stride}, left, right, deep);
    tile_mma(b_, sums_block(tile_, false), {*scratch_.block, 0, block}, left, right, deep);
    finish_block(slot, row_block, column, depth, first, count);
    b_.for_loop(0, block, 1, [&](Value r) {
      for (int v = 0; v < block; v += lanes) {
        const Value to = at + r * sums.stride + v,
                    more = b_.load(*scratch_.block, r * block + v, lanes, {}, vector_bytes);
        b_.store(sums.buffer, to, b_.load(sums.buffer, to, lanes, {}, vector_bytes) + more, {}, vector_bytes);
      }
    });
  });
}

/// Finishes the sums of 32 columns over the row block's rows from `first` on, for 32 elements of the depth.
void TiledOutput::finish_block(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value column,
                               Value depth, Value first, Value count) {
  const LoadOperand own = values(slot, row_block, true), others = other_.transposed_callback();
  const Value all = b_.index(*part_.depth.value()), rows = max(count - first, 0);
  scratch_.exact->finish_sums({*scratch_.block, b_.index(0), b_.index(block), row_block.hi - column, all - depth},
                              {.batch = row_block.outer,
                               .row = column,
                               .rows = row_block.hi,
                               .k0 = first,
                               .depth = rows,
                               .k = count,
                               .axis = LaneAxis::k,
                               .load = &own},
                              {.batch = row_block.outer,
                               .row = depth,
                               .rows = all,
                               .k0 = row_block.row + first,
                               .depth = rows,
                               .k = row_block.row + count,
                               .axis = other_.transposed_axis(),
                               .load = &others});
}

}  // namespace lathe::cpu
