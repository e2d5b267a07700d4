#pragma once

#include <functional>

#include "ir/kernel/builder.h"

namespace lathe::schedule {

/// A block of sums that stays in registers: rows x vectors of `lanes` elements.
struct RegisterTile {
  DType compute = f32;
  int lanes = 16;
  int rows = 6, vectors = 4;
};

/// Where the factors of a tile come from, step by step over k.
using TileElement = std::function<kernel::Value(kernel::Value k, int row)>;    ///< a scalar
using TileVector = std::function<kernel::Value(kernel::Value k, int vector)>;  ///< `lanes` elements
/// The sums before, where the product continues.
using TileStart = std::function<kernel::Value(int row, int vector)>;
/// What is done with the sums after.
using TileSink = std::function<void(int row, int vector, kernel::Value sum)>;

/// sum[r][v] = start(r, v) + sum over k in lo .. hi of element(k, r) * vector(k, v), k ascending, one fma a step. An
/// empty start: zero.
void emit_register_tile(kernel::Builder& b, const RegisterTile& tile, kernel::Value lo, kernel::Value hi,
                        const TileElement& element, const TileVector& vector, const TileStart& start,
                        const TileSink& sink);

}  // namespace lathe::schedule
