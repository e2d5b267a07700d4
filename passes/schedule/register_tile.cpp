#include "passes/schedule/register_tile.h"

namespace lathe::schedule {

using kernel::Builder;
using kernel::Value;

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
      const Value row = b.broadcast(element(k, r), tile.lanes);
      for (int v = 0; v < tile.vectors; ++v) {
        const kernel::Var sum = sums[static_cast<std::size_t>(r * tile.vectors + v)];
        b.set(sum, b.fma(row, columns[static_cast<std::size_t>(v)], b.get(sum)));
      }
    }
  });
  for (int r = 0; r < tile.rows; ++r)
    for (int v = 0; v < tile.vectors; ++v) sink(r, v, b.get(sums[static_cast<std::size_t>(r * tile.vectors + v)]));
}

}  // namespace lathe::schedule
