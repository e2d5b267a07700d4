#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/tile_mma.h"
#include "tests/support/graphs/round_trip.h"

namespace lathe::test {

/// Returns a kernel for out[m][n] = c[m][n] + sum over k of x[m][k] * y[k][n] by one tile_mma, with y in pairs of k.
/// Kernel arguments: c, x, y, out; k, the row stride of x, and the stride between pairs of k of y. Terms of split
/// bf16 are in blocks, for which the row strides of x and y are ignored. Cache lines are prefetched past the end of
/// x.
inline kernel::Kernel tile_block(int rows, int columns, bool continues, int stride_of_sums = 40,
                                 bool split_bf16 = false, int prefetch_lines = 0) {
  using namespace kernel;
  Builder b("tiles");
  const Buffer c = b.buffer("c", f32, Access::read), x = b.buffer("x", bf16, Access::read),
               y = b.buffer("y", bf16, Access::read), out = b.buffer("out", f32, Access::write);
  const Value k = b.dim("k"), x_stride = b.dim("x_stride"), y_stride = b.dim("y_stride");
  b.parallel_for(0, 1, 1, [&](Value) {
    const Buffer sums = b.alloc(f32, std::int64_t{32} * stride_of_sums, Space::stack, "sums");
    b.for_loop(0, rows, 1, [&](Value m) {
      for (int n = 0; continues && n < columns; n += 16)
        b.store(sums, m * stride_of_sums + n, b.load(c, m * columns + n, 16));
    });
    tile_mma(b, {rows, columns, continues, split_bf16, 1 << 20, prefetch_lines}, {sums, 0, stride_of_sums},
             {x, 0, split_bf16 ? b.index(tile_depth) : x_stride},
             {y, 0, split_bf16 ? b.index(2 * tile_depth) : y_stride}, k);
    b.for_loop(0, rows, 1, [&](Value m) {
      for (int n = 0; n < columns; n += 16) b.store(out, m * columns + n, b.load(sums, m * stride_of_sums + n, 16));
    });
  });
  return test::round_trip(b.finish());
}

}  // namespace lathe::test
