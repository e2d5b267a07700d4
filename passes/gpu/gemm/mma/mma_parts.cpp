#include "passes/gpu/gemm/mma/mma_parts.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/thread_sums.h"

namespace lathe::gpu {

using kernel::Value;
using Position = ProductParts::Position;
using Side = ProductParts::Side;

namespace {

constexpr int chunks_at_once = 4;

bool is_multiple(const Dim& size, int of) { return size.divided_by(of).has_value(); }

}  // namespace

bool TensorParts::copies(const Side& side) const {
  const ProductOperand& operand = side.operand;
  return lies_in_chunks(operand.operand.program, side.along_k() ? operand.k : operand.rows, product.operands.dtype) &&
         product.only_reads(side.operand.operand.program[0].buffer);
}

void TensorParts::copy(const Side& side, Value batch, Value row, Value k, Value offset, int rows, int depth) {
  const ProductOperand& operand = side.operand;
  const ElementwiseInstruction& load = operand.operand.program[0];
  ElementwiseEmitter::Scope scope(side.loads, {{operand.batch, batch, 1}, {operand.rows, row, 1}, {operand.k, k, 1}},
                                  {}, &side.top);
  async_copy(product.builder(), side.shared, offset, product.context().buffer(product.buffer_of(load.buffer)),
             scope.indices.position(load.form).base, inside(side, row, k, rows, depth));
}

/// Returns how many elements of a chunk are inside the operand; negative if it is outside, and possibly more than a
/// chunk. Empty if all are known to be inside.
Value TensorParts::inside(const Side& side, Value row, Value k, int rows, int depth) {
  kernel::Builder& b = product.builder();
  const bool along_k = side.along_k();
  const Value all_rows = product.context().dim(side.rows);
  const bool ragged_rows = !is_multiple(side.rows, rows), ragged_k = !is_multiple(product.operands.k, depth);
  Value count;
  if (along_k ? ragged_k : ragged_rows) count = along_k ? product.k - k : all_rows - row;
  if (along_k ? ragged_rows : ragged_k)
    count = b.select(along_k ? row < all_rows : k < product.k, count ? count : b.index(chunk), b.index(0));
  return count;
}

void TensorParts::store_sums(kernel::Buffer to, Value first, std::int64_t stride, int columns, Value lane,
                             Value sums) {
  kernel::Builder& b = product.builder();
  const Value own = first + (lane / 4 * stride + lane % 4 * 2);
  for (int i = 0; i < sums.type.lanes; i += 2) {
    const kernel::AccumulatorPosition offset = kernel::accumulator_position(columns, 0, i);
    b.store(to, own + (offset.row * stride + offset.column), b.cast(b.slice(sums, i, 2), to.dtype));
  }
}

void TensorParts::finish(const Position& at, kernel::Buffer sums, const TensorTile& tile, Value t,
                         kernel::Builder::Bound first) {
  kernel::Builder& b = product.builder();
  const int chunks_per_row = tile.columns / chunk, chunks = tile.rows * chunks_per_row, threads = tile.threads();
  const auto one = [&](Value number, bool is_inside) {
    const Value m = number / chunks_per_row, n = number % chunks_per_row * chunk;
    const Value own = b.cast(b.load(sums, b.bound(first) + (m * stride(tile) + n), chunk), f32);
    if (is_inside)
      product.finish_inside(at.batch, at.m + m, at.n + n, own);
    else
      product.finish(at.batch, at.m + m, at.n + n, own);
  };
  // Without branches between them, loads of several chunks are in flight at the same time.
  const auto whole = [&] {
    const int at_once = std::min(chunks_at_once, chunks / threads);
    b.for_loop(t, chunks, threads * at_once, [&](Value first) {
      b.for_loop(0, at_once, 1, [&](Value i) { one(first + i * threads, true); }, kernel::LoopKind::unroll);
    });
  };
  if (is_multiple(product.operands.m, tile.rows) && is_multiple(product.operands.n, tile.columns)) return whole();
  b.if_(at.m + tile.rows <= product.m && at.n + tile.columns <= product.n, whole,
        [&] { b.for_loop(t, chunks, threads, [&](Value number) { one(number, false); }); });
}

}  // namespace lathe::gpu
