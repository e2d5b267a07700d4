#include "passes/cpu/attention/decode/decode_products.h"

#include <algorithm>

#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Value;
using Columns = DecodeLoops::Columns;

DecodeScore::DecodeScore(KernelContext& context, const CpuContext& lowering, const AttentionParts::Score& part,
                         const DecodeShape& shape)
    : context_(context),
      b_(context.builder),
      part_(part),
      shape_(shape),
      rows_(context, lowering, part.rows, shape.compute),
      columns_(context, lowering, part.columns, shape.compute) {}

void DecodeScore::hoist() {
  rows_.hoist();
  columns_.hoist();
}

void DecodeScore::pack_rows(Value outer) {
  copy_to(rows_, packed_rows_, outer, b_.index(0), b_.index(shape_.rows), shape_.lanes);
}

void DecodeScore::multiply(const ScratchMatrix& slot, Value outer, const Columns& columns) {
  columns_.axis() == LaneAxis::row ? along_columns(slot, outer, columns) : dots(slot, outer, columns);
}

/// Processes as many columns at a time as registers allow, and the last ones singly. Columns are read one after the
/// other, each along its contiguous depth.
void DecodeScore::dots(const ScratchMatrix& slot, Value outer, const Columns& columns) {
  const int lanes = shape_.lanes, rows = shape_.rows;
  int width = part_.depth.value() ? lanes : 1;
  while (width > 1 && width * rows > shape_.accumulators) width /= 2;
  const Value whole = columns.lo + (columns.hi - columns.lo) / width * width;
  const auto block = [&](Value column, int row) { return row * slot.stride + (column - columns.lo); };
  const ColumnDots dots = column_dots(outer);
  b_.for_loop(columns.lo, width > 1 ? whole : columns.lo, width, [&](Value column) {
    std::vector<Value> sums(static_cast<std::size_t>(rows * width));
    for (int j = 0; j < width; ++j) {
      const std::vector<Value> found = dots(column + j);
      for (int i = 0; i < rows; ++i) sums[i * width + j] = found[i];
    }
    const int at_once = lanes / width;  // rows whose sums fill a vector
    for (int first = 0; first < rows; first += at_once) {
      std::vector<Value> group;
      for (int i = 0; i < lanes; ++i)
        group.push_back(sums[std::min(static_cast<std::size_t>(first * width + i), sums.size() - 1)]);
      const Value added = sums_of_lanes(b_, std::move(group));
      for (int row = first; row < std::min(first + at_once, rows); ++row)
        b_.store(slot.buffer, block(column, row), b_.slice(added, (row - first) * width, width));
    }
  });
  b_.for_loop(width > 1 ? whole : columns.lo, columns.hi, 1, [&](Value column) {
    const std::vector<Value> found = dots(column);
    for (int i = 0; i < rows; ++i) b_.store(slot.buffer, block(column, i), b_.reduce(ScalarOp::add, found[i]));
  });
}

/// Returns a function that computes the dot product of each row with a column, as one partial sum per lane.
DecodeScore::ColumnDots DecodeScore::column_dots(Value outer) {
  const int lanes = shape_.lanes, rows = shape_.rows;
  const auto depth = part_.depth.value();
  const auto row_vector = [this, lanes](int row, Value k, Value mask) {
    return b_.load(packed_rows_.buffer, row * packed_rows_.stride + k, lanes, mask);
  };
  const auto column_vector = [this, outer, lanes](Value column, Value k, Value mask) {
    return columns_.load(outer, column, k, LaneAxis::k, lanes, mask);
  };
  if (!depth)
    return [=, this](Value column) {
      std::vector<kernel::Var> sums;
      for (int i = 0; i < rows; ++i) sums.push_back(b_.var(b_.constant(shape_.compute, 0, lanes)));
      const Value end = context_.dim(part_.depth);
      b_.for_loop(0, end, lanes, [&](Value k) {
        const Value mask = b_.tail_mask(end - k, lanes), elements = column_vector(column, k, mask);
        for (int i = 0; i < rows; ++i) {
          const kernel::Var sum = sums[i];
          b_.set(sum, multiply_add(b_, row_vector(i, k, mask), elements, b_.get(sum)));
        }
      });
      std::vector<Value> found;
      for (const kernel::Var sum : sums) found.push_back(b_.get(sum));
      return found;
    };
  const int vectors = static_cast<int>((*depth + lanes - 1) / lanes);
  const auto mask_of = [this, depth, lanes](int v) {
    return (v + 1) * lanes <= *depth ? Value{} : b_.tail_mask(b_.index(*depth - v * lanes), lanes);
  };
  std::vector<Value> held;  // rows in registers, in addition to the sums
  if (rows * vectors <= shape_.held)
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < vectors; ++v) held.push_back(row_vector(i, b_.index(v * lanes), mask_of(v)));
  return [=, this](Value column) {
    std::vector<Value> sums(static_cast<std::size_t>(rows), b_.constant(shape_.compute, 0, lanes));
    for (int v = 0; v < vectors; ++v) {
      columns_.prefetch(outer, column + shape_.prefetch_distance(*depth), v * lanes, lanes);
      const Value k = b_.index(v * lanes), mask = mask_of(v), elements = column_vector(column, k, mask);
      for (int i = 0; i < rows; ++i) {
        Value& sum = sums[i];
        const Value row = held.empty() ? row_vector(i, k, mask) : held[i * vectors + v];
        sum = multiply_add(b_, row, elements, sum);
      }
    }
    return sums;
  };
}

void DecodeScore::along_columns(const ScratchMatrix& slot, Value outer, const Columns& columns) {
  const int lanes = shape_.lanes;
  const int vectors = std::clamp(shape_.accumulators / shape_.rows, 1, 4);
  const RegisterTile tile{.compute = shape_.compute, .lanes = lanes, .rows = shape_.rows, .vectors = 1};
  const auto some = [&](Value column, int count, bool masked) {
    RegisterTile wide = tile;
    wide.vectors = count;
    const auto element = [&](Value k, int row) {
      return b_.load(packed_rows_.buffer, row * packed_rows_.stride + k);
    };
    const Value mask = masked ? b_.tail_mask(columns.hi - column, lanes) : Value{};
    const auto vector = [&](Value k, int v) {
      return columns_.load(outer, column + v * lanes, k, LaneAxis::row, lanes, mask);
    };
    const auto sink = [&](int row, int v, Value sum) {
      b_.store(slot.buffer, row * slot.stride + (column - columns.lo) + v * lanes, sum);
    };
    emit_register_tile(b_, wide, b_.index(0), context_.dim(part_.depth), element, vector, {}, sink);
  };
  const Value count = columns.hi - columns.lo, step = b_.index(vectors * lanes);
  const Value whole = columns.lo + count / step * step;
  b_.for_loop(columns.lo, whole, vectors * lanes, [&](Value column) { some(column, vectors, false); });
  b_.for_loop(whole, columns.hi, lanes, [&](Value column) { some(column, 1, true); });
}

/// If the sums of the whole depth do not fit into registers, a block of columns stays in L1 while they are computed
/// in parts.
void DecodeSum::add_up(const ScratchMatrix& slot, Value outer, const Columns& columns, Value at) {
  const int lanes = shape_.lanes, most = std::max(shape_.accumulators / shape_.rows, 1);
  const auto known = output_.part().depth.value();
  const int all = known ? static_cast<int>((*known + lanes - 1) / lanes) : 0;
  if (known && all <= most) return tile(slot, outer, columns, columns, at, b_.index(0), all);
  const Value blocks = max(b_.ceil_div(columns.hi - columns.lo, shape_.block_columns), 1);
  b_.for_loop(0, blocks, 1, [&](Value number) {
    const Value lo = columns.lo + number * shape_.block_columns;
    const Columns some{lo, min(lo + shape_.block_columns, columns.hi)};
    if (!known)
      return b_.for_loop(0, context_.dim(output_.part().depth), lanes,
                         [&](Value depth0) { tile(slot, outer, columns, some, at, depth0, 1); });
    for (int v = 0; v < all; v += most)
      tile(slot, outer, columns, some, at, b_.index(v * lanes), std::min(most, all - v));
  });
}

void DecodeSum::tile(const ScratchMatrix& slot, Value outer, const Columns& all, const Columns& some, Value at,
                     Value depth0, int vectors) {
  const int lanes = shape_.lanes;
  const auto known = output_.part().depth.value();
  std::vector<Value> masks;
  for (int v = 0; v < vectors; ++v)
    masks.push_back(known && *known % lanes == 0
                        ? Value{}
                        : b_.tail_mask(context_.dim(output_.part().depth) - depth0 - v * lanes, lanes));
  const auto element = [&](Value column, int row) {
    return b_.cast(b_.load(slot.buffer, row * slot.stride + (column - all.lo)), shape_.compute);
  };
  const auto vector = [&](Value column, int v) {
    return output_.other().load(outer, column, depth0 + v * lanes, LaneAxis::k, lanes, masks[v]);
  };
  const auto sum_at = [&](int row, int v) { return (at + row) * sums_.stride + depth0 + v * lanes; };
  const Value continues = b_.broadcast(some.lo > all.lo, lanes);
  const TileStart begun = [&](int row, int v) { return b_.load(sums_.buffer, sum_at(row, v), lanes, continues); };
  const auto sink = [&](int row, int v, Value sum) { b_.store(sums_.buffer, sum_at(row, v), sum); };
  const RegisterTile tile{.compute = shape_.compute, .lanes = lanes, .rows = shape_.rows, .vectors = vectors};
  emit_register_tile(b_, tile, some.lo, some.hi, element, vector, some.lo.id == all.lo.id ? TileStart{} : begun,
                     sink);
}

}  // namespace lathe::cpu
