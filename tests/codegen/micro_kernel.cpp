#include "tests/codegen/micro_kernel.h"

namespace lathe::testing {

using namespace lathe::kernel;

Kernel micro_kernel(int rows, int columns) {
  Builder b("micro_kernel");
  Buffer a = b.buffer("a", f32, Access::read), panel = b.buffer("b", f32, Access::read);
  Buffer c = b.buffer("c", f32, Access::write);
  Value k = b.dim("k"), repeats = b.dim("repeats");
  b.parallel_for(0, repeats, 1, [&](Value) {
    std::vector<Var> tile;
    for (int i = 0; i < rows * columns; ++i) tile.push_back(b.var(b.constant(f32, 0, 16)));
    b.for_loop(0, k, 1, [&](Value p) {
      std::vector<Value> right;
      for (int j = 0; j < columns; ++j) right.push_back(b.load(panel, p * (columns * 16) + j * 16, 16));
      for (int i = 0; i < rows; ++i) {
        Value left = b.broadcast(b.load(a, p * rows + i), 16);
        for (int j = 0; j < columns; ++j) {
          const Var var = tile[static_cast<std::size_t>(i * columns + j)];
          b.set(var, b.fma(left, right[static_cast<std::size_t>(j)], b.get(var)));
        }
      }
    });
    for (int i = 0; i < rows * columns; ++i) b.store(c, i * 16, b.get(tile[static_cast<std::size_t>(i)]));
  });
  return b.finish();
}

Kernel peak_kernel() {
  Builder b("peak");
  Buffer c = b.buffer("c", f32, Access::read_write);
  Value repeats = b.dim("repeats");
  std::vector<Var> chains;
  for (int i = 0; i < 24; ++i) chains.push_back(b.var(b.load(c, i * 16, 16)));
  Value x = b.load(c, 0, 16), y = b.load(c, 16, 16);
  b.for_loop(0, repeats, 1, [&](Value) {
    for (const Var chain : chains) b.set(chain, b.fma(b.get(chain), x, y));
  });
  for (int i = 0; i < 24; ++i) b.store(c, i * 16, b.get(chains[static_cast<std::size_t>(i)]));
  return b.finish();
}

}  // namespace lathe::testing
