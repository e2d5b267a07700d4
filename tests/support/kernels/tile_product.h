#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/mma.h"
#include "tests/support/graphs/round_trip.h"

/// A matmul by tensor core operations only: sums[left_rows, right_rows] = left * right^T, by one warp.
namespace lathe::test {

struct TileProduct {
  DType dtype = bf16;
  int left_rows = 16, right_rows = 16;
  bool left_transposed = false, right_transposed = false;  ///< [k, rows] instead of [rows, k], in both memories
  bool waits = true, barrier = true;                       ///< false: mistakes that must be detected
};

/// Buffers left, right, sums. Dims: k, summed in steps of 16 of which the last may be ragged; the row strides of left
/// and right in memory, multiples of 8.
inline kernel::Kernel tile_product(const TileProduct& p) {
  using namespace kernel;
  Builder b("tile_product");
  const Buffer memory[] = {b.buffer("left", p.dtype, Access::read), b.buffer("right", p.dtype, Access::read)};
  const Buffer out = b.buffer("sums", f32, Access::write);
  const Value k = b.dim("k"), strides[] = {b.dim("left_stride"), b.dim("right_stride")};
  const int rows[] = {p.left_rows, p.right_rows};
  const bool transposed[] = {p.left_transposed, p.right_transposed};
  Buffer shared[2];
  for (int s = 0; s < 2; ++s) shared[s] = b.alloc(p.dtype, (rows[s] + 8) * 24, Space::shared, s ? "b" : "a");
  const auto shared_stride = [&](int s) { return transposed[s] ? rows[s] + 8 : mma_depth + 8; };
  const auto copy = [&](int s, Value t, Value first) {
    const int across = (transposed[s] ? rows[s] : mma_depth) / 8, count = rows[s] * mma_depth / 8;
    b.for_loop(t, count, warp_threads, [&](Value chunk) {
      const Value other = chunk / across, along = chunk % across * 8, to = other * shared_stride(s) + along;
      if (transposed[s])
        async_copy(b, shared[s], to, memory[s], (first + other) * strides[s] + along,
                   b.select(first + other < k, b.index(8), b.index(0)));
      else
        async_copy(b, shared[s], to, memory[s], other * strides[s] + first + along, k - first - along);
    });
  };
  const auto thread = [&](Value t) {
    const int lanes = p.left_rows * p.right_rows / warp_threads;
    const Var sums = b.var({f32, lanes}, b.constant(f32, 0));
    b.for_loop(0, k, mma_depth, [&](Value first) {
      for (const int s : {0, 1}) copy(s, t, first);
      commit_copies(b);
      if (p.waits) wait_copies(b, 0);
      if (p.barrier) b.barrier();
      const auto matrix = [&](int s) { return MmaOperand{shared[s], 0, shared_stride(s), rows[s], transposed[s]}; };
      b.set(sums, mma(b, matrix(0), matrix(1), b.get(sums)));
      b.barrier();
    });
    for (int i = 0; i < lanes; i += 2) {
      const AccumulatorPosition at = accumulator_position(p.right_rows, 0, i);
      const Value row = t / 4 + at.row, column = t % 4 * 2 + at.column;
      b.store(out, row * p.right_rows + column, b.slice(b.get(sums), i, 2));
    }
  };
  b.for_loop(0, warp_threads, 1, thread, LoopKind::thread_x);
  return test::round_trip(b.finish());
}

}  // namespace lathe::test
