#include "passes/cpu/attention/attention_output.h"

#include <algorithm>

#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Value;

AttentionOutput::AttentionOutput(KernelContext& context, const CpuContext& lowering,
                                 const AttentionParts::OutputProduct& part, const RegisterTile& tile,
                                 const ColumnBounds& bounds, bool tiled)
    : context_(context),
      b_(context.builder),
      part_(part),
      blocks_(lowering.tuned.attention),
      tile_(tile),
      bounds_(bounds),
      dtype_(lowering.graph[part.node].type.dtype),
      other_(context, lowering, part.other, tile.compute),
      emitter_(context, part.epilogue, lowering.buffer_of),
      top_(emitter_, {}) {
  if (tiled) tiled_.emplace(context, part_, other_, tile.vectors * tile.lanes, blocks_.packed_columns);
}

void AttentionOutput::set_scratch(const Scratch& scratch) {
  sums_ = scratch.sums;
  staged_ = scratch.staged;
  divisors_ = scratch.divisors;
  pairs_ = scratch.pairs;
}

void AttentionOutput::keep_divisors(ElementwiseEmitter& emitter, RowBlockLoops::Rows& rows, Value columns) {
  if (!divisors_) return;
  const Value some = b_.broadcast(columns > 0, tile_.lanes);
  for (std::size_t v = 0; v < rows.size(); ++v) {
    const Value divisor = b_.broadcast(emitter.emit(*part_.divisor, *rows[v]), tile_.lanes);
    const Value kept = b_.select(some, divisor, b_.constant(tile_.compute, 1, tile_.lanes));
    b_.store(divisors_->buffer, static_cast<int>(v) * tile_.lanes, kept, {}, bytes());
  }
}

void AttentionOutput::stage_columns(Value outer, Value columns) {
  if (part_.over_rows) return;
  tiled_ ? tiled_->stage_columns(outer, columns) : stage(outer, b_.index(0), columns);
}

/// Stages positions first .. first + count of the other operand, unless it is read in place.
void AttentionOutput::stage(Value outer, Value first, Value count) {
  if (!staged_) return;
  if (part_.pairs)
    pairs_to(other_, *staged_, outer, first, count, tile_.lanes);
  else
    copy_to(other_, *staged_, outer, first, count, tile_.lanes);
}

int AttentionOutput::bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }

RegisterTile AttentionOutput::tile(int rows, int vectors) const {
  RegisterTile found = tile_;
  found.rows = rows;
  found.vectors = vectors;
  return found;
}

/// Returns a loader of the other operand's vectors at positions first + k, or pairs of positions, from `depth0` of
/// the depth on.
TileVector AttentionOutput::depth_vectors(Value outer, Value first, Value depth0, bool masked) {
  const int lanes = tile_.lanes;
  std::vector<Value> masks;
  for (int v = 0; v < tile_.vectors; ++v)
    masks.push_back(masked ? b_.tail_mask(context_.dim(part_.depth) - depth0 - v * lanes, lanes) : Value{});
  return [this, outer, first, depth0, masks, lanes](Value k, int v) {
    const Value d = depth0 + v * lanes;
    const int step = part_.pairs ? 2 : 1;
    if (staged_) return b_.load(staged_->buffer, (k * staged_->stride + d) * step, step * lanes, {}, bytes());
    return other_.load(outer, first + k, d, LaneAxis::k, lanes, masks[v]);
  };
}

/// Emits body(row, rows) for tiles that cover the first `count` rows of a row block of up to `most` rows.
void AttentionOutput::row_tiles(Value count, int most, const std::function<void(Value, int)>& body) {
  const int remainder = most % tile_.rows, whole = most - remainder;
  b_.for_loop(0, min(count, whole), tile_.rows, [&](Value row) { body(row, tile_.rows); });
  if (remainder > 0) b_.if_(count > whole, [&] { body(b_.index(whole), remainder); });
}

/// Emits body(depth0, vectors, masked) for tiles that cover the depth.
void AttentionOutput::depth_tiles(const std::function<void(Value, int, bool)>& body) {
  const auto known = part_.depth.value();
  if (!known) {
    b_.for_loop(0, context_.dim(part_.depth), tile_.lanes, [&](Value d) { body(d, 1, true); });
    return;
  }
  const int all = static_cast<int>((*known + tile_.lanes - 1) / tile_.lanes);
  for (int v = 0; v < all; v += tile_.vectors) {
    const int vectors = std::min(tile_.vectors, all - v);
    body(b_.index(v * tile_.lanes), vectors, (v + vectors) * tile_.lanes > *known);
  }
}

/// Returns the part of columns lo .. hi that at least one row of the tile at `row` needs.
std::pair<Value, Value> AttentionOutput::columns_of_rows(const RowBlockPosition& row_block, Value row, Value lo,
                                                         Value hi) {
  if (bounds_.lower) lo = b_.select(row_block.skips, max(lo, row + context_.dim(*bounds_.lower)), lo);
  if (bounds_.upper) hi = b_.select(row_block.skips, min(hi, row + context_.dim(*bounds_.upper) + tile_.rows), hi);
  return {lo, hi};
}

/// Returns the rows of the row block that need at least one column of the tile at `column`.
std::pair<Value, Value> AttentionOutput::rows_of_columns(const RowBlockPosition& row_block, Value column,
                                                         Value count) {
  Value from = b_.index(0), to = count;
  if (bounds_.upper)
    from = b_.select(row_block.skips, max(column - context_.dim(*bounds_.upper) - row_block.row, 0), from);
  if (bounds_.lower)
    to = b_.select(row_block.skips, min(count, column + tile_.rows - context_.dim(*bounds_.lower) - row_block.row),
                   to);
  return {from, to};
}

/// Converts a range of columns or rows to steps of a matmul. Pairs start at even positions; the extra element of a
/// pair contributes nothing, because the row block has zeros there.
std::pair<Value, Value> AttentionOutput::steps(std::pair<Value, Value> range) {
  if (!part_.pairs) return range;
  return {range.first / 2, b_.ceil_div(range.second, 2)};
}

/// Stores columns lo .. hi of a row block as pairs[column / 2][row], starting at lo. An odd last column is paired
/// with zeros.
void AttentionOutput::columns_in_pairs(const ScratchMatrix& slot, Value lo, Value hi, Value count) {
  const int lanes = tile_.lanes, vectors = static_cast<int>(*b_.constant_value(pairs_->stride)) / lanes;
  const auto pair = [&](Value column, bool whole) {
    for_unrolled(b_, b_.index(0), b_.ceil_div(count, lanes), vectors, [&](Value v) {
      const auto numbers = [&](Value at) {
        return b_.load(slot.buffer, at * slot.stride + v * lanes, lanes, {}, bytes() / 2);
      };
      const Value odd = whole ? numbers(column + 1) : b_.constant(bf16, 0, lanes);
      b_.store(pairs_->buffer, ((column - lo) / 2 * pairs_->stride + v * lanes) * 2,
               interleave(b_, numbers(column), odd), {}, bytes());
    });
  };
  const Value even = lo + (hi - lo) / 2 * 2;
  b_.for_loop(lo, even, 2, [&](Value column) { pair(column, true); });
  b_.if_(even < hi, [&] { pair(even, false); });
}

void AttentionOutput::sum_over_columns(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count,
                                       Value at, bool begun) {
  if (tiled_) return tiled_->sum_over_columns(slot, row_block, count, at, begun);
  const int lanes = tile_.lanes;
  const Value blocks = b_.ceil_div(row_block.hi - row_block.lo, column_block());
  b_.for_loop(0, begun ? blocks : max(blocks, 1), 1, [&](Value block) {
    const Value lo = row_block.lo + block * column_block(), hi = min(lo + column_block(), row_block.hi);
    const Value continues = begun ? Value{} : b_.broadcast(block > 0, lanes);
    if (part_.pairs) columns_in_pairs(slot, lo, hi, count);
    depth_tiles([&](Value depth0, int vectors, bool masked) {
      row_tiles(count, static_cast<int>(*b_.constant_value(slot.stride)), [&](Value row, int rows) {
        const auto sum_at = [&](int r, int v) { return (at + row + r) * sums_.stride + depth0 + v * lanes; };
        const auto element = [&](Value k, int r) {
          if (part_.pairs) return b_.load(pairs_->buffer, ((k - lo / 2) * pairs_->stride + row + r) * 2, 2);
          return b_.cast(b_.load(slot.buffer, k * slot.stride + row + r), tile_.compute);
        };
        const auto start = [&](int r, int v) {
          return b_.load(sums_.buffer, sum_at(r, v), lanes, continues, bytes());
        };
        const auto sink = [&](int r, int v, Value sum) { b_.store(sums_.buffer, sum_at(r, v), sum, {}, bytes()); };
        const auto vector = depth_vectors(row_block.outer, b_.index(0), depth0, masked);
        const auto [from, to] = steps(columns_of_rows(row_block, row_block.row + row, lo, hi));
        emit_register_tile(b_, tile(rows, vectors), from, to, element, vector, start, sink);
      });
    });
  });
}

void AttentionOutput::clear(Value first, Value last) {
  const Value end = b_.round_up(last, tile_.rows) * sums_.stride;
  b_.for_loop(first * sums_.stride, end, tile_.lanes,
              [&](Value i) { b_.store(sums_.buffer, i, b_.constant(tile_.compute, 0, tile_.lanes), {}, bytes()); });
}

void AttentionOutput::sum_over_rows(const ScratchMatrix& slot, const RowBlockPosition& row_block, Value count) {
  if (tiled_) return tiled_->sum_over_rows(slot, row_block, count);
  const int lanes = tile_.lanes;
  stage(row_block.outer, row_block.row, count);
  const Value first = staged_ ? b_.index(0) : row_block.row;
  depth_tiles([&](Value depth0, int vectors, bool masked) {
    b_.for_loop(row_block.lo, row_block.hi, tile_.rows, [&](Value column) {
      const auto at = [&](int r, int v) { return (column + r) * sums_.stride + depth0 + v * lanes; };
      const auto element = [&](Value k, int r) {
        const Value row_start = (column + r) * slot.stride;
        if (part_.pairs) return b_.load(slot.buffer, row_start + 2 * k, 2);
        return b_.cast(b_.load(slot.buffer, row_start + k), tile_.compute);
      };
      const auto start = [&](int r, int v) { return b_.load(sums_.buffer, at(r, v), lanes, {}, bytes()); };
      const auto sink = [&](int r, int v, Value sum) { b_.store(sums_.buffer, at(r, v), sum, {}, bytes()); };
      const auto vector = depth_vectors(row_block.outer, first, depth0, masked);
      const auto [from, to] = steps(rows_of_columns(row_block, column, count));
      emit_register_tile(b_, tile(tile_.rows, vectors), from, to, element, vector, start, sink);
    });
  });
}

void AttentionOutput::epilogue(Value outer, Value first, Value count, Value at) {
  const int lanes = tile_.lanes;
  b_.for_loop(0, count, 1, [&](Value position) {
    const Value divisor = divisors_ ? b_.load(divisors_->buffer, position) : Value{};
    vector_loop(b_, b_.index(0), context_.dim(part_.depth), lanes, [&](Value d, Value mask) {
      ElementwiseEmitter::Scope scope(
          emitter_,
          {{part_.outer_dims, outer, 1}, {part_.position_dims, first + position, 1}, {part_.depth_dims, d, lanes}},
          mask, &top_);
      Value sum = b_.load(sums_.buffer, (at + position) * sums_.stride + d, lanes, {}, bytes());
      if (divisors_) sum = sum / divisor;
      scope.bind(0, rounded(b_, sum, dtype_));
      for (const ElementwiseStore& store : part_.epilogue.stores)
        emitter_.store(store.node, part_.epilogue[store.value].dtype, store.form, emitter_.emit(store.value, scope),
                       scope);
    });
  });
}

}  // namespace lathe::cpu
