#include "passes/cpu/gemm/register_tile.h"

#include "ir/kernel/intrinsics/split_bf16.h"

namespace lathe::cpu {

using kernel::Builder;
using kernel::Value;

Value in_every_lane(Builder& b, Value element, int lanes) {
  if (element.type.lanes == 1) return b.broadcast(element, lanes);
  std::vector<int> pairs;
  for (int i = 0; i < 2 * lanes; ++i) pairs.push_back(i % 2);
  return b.shuffle(element, element, std::move(pairs));
}

Value multiply_add(Builder& b, Value x, Value y, Value sum) {
  if (x.type.scalar == bf16) return dot_pairs(b, x, y, sum);
  return is_float(x.type.scalar) ? b.fma(x, y, sum) : x * y + sum;
}

void emit_register_tile(Builder& b, const RegisterTile& tile, Value lo, Value hi, const TileElement& element,
                        const TileVector& vector, const TileStart& start, const TileSink& sink) {
  std::vector<kernel::Var> sums;
  for (int r = 0; r < tile.rows; ++r)
    for (int v = 0; v < tile.vectors; ++v)
      sums.push_back(
          b.var({tile.compute, tile.lanes}, start ? start(r, v) : b.constant(tile.compute, 0, tile.lanes)));
  b.for_loop(lo, hi, 1, [&](Value k) {
    std::vector<Value> columns;
    for (int v = 0; v < tile.vectors; ++v) columns.push_back(vector(k, v));
    for (int r = 0; r < tile.rows; ++r) {
      const Value row = in_every_lane(b, element(k, r), tile.lanes);
      for (int v = 0; v < tile.vectors; ++v) {
        const kernel::Var sum = sums[r * tile.vectors + v];
        b.set(sum, multiply_add(b, row, columns[v], b.get(sum)));
      }
    }
  });
  for (int r = 0; r < tile.rows; ++r)
    for (int v = 0; v < tile.vectors; ++v) sink(r, v, b.get(sums[r * tile.vectors + v]));
}

}  // namespace lathe::cpu
