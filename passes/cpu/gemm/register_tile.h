#pragma once

#include <functional>

#include "ir/kernel/build/builder.h"
#include "ir/machine/vector_registers.h"

namespace lathe::cpu {

/// A block of sums that stays in registers: rows x vectors of `lanes` elements.
struct RegisterTile {
  DType compute = f32;
  int lanes = 1;
  int rows = 6, vectors = 4;
};

/// Accumulators that stay in registers beside the operands.
inline int accumulators(const VectorRegisters& vectors) { return vectors.count * 3 / 4; }

/// An element for every lane of the sums; two elements, for every pair of lanes.
kernel::Value in_every_lane(kernel::Builder& b, kernel::Value element, int lanes);
/// sum + x * y by one fma; of integers; of pairs of bf16 by dot_pairs.
kernel::Value multiply_add(kernel::Builder& b, kernel::Value x, kernel::Value y, kernel::Value sum);

/// Where the factors of a tile come from, step by step over k. A step may be a pair of bf16: then both are twice as
/// many elements.
using TileElement = std::function<kernel::Value(kernel::Value k, int row)>;    ///< a scalar
using TileVector = std::function<kernel::Value(kernel::Value k, int vector)>;  ///< `lanes` elements
/// The sums before, where the product continues.
using TileStart = std::function<kernel::Value(int row, int vector)>;
/// What is done with the sums after.
using TileSink = std::function<void(int row, int vector, kernel::Value sum)>;

/// sum[r][v] = start(r, v) + sum over k in lo .. hi of element(k, r) * vector(k, v), k ascending, one multiply_add a
/// step. An empty start: zero.
void emit_register_tile(kernel::Builder& b, const RegisterTile& tile, kernel::Value lo, kernel::Value hi,
                        const TileElement& element, const TileVector& vector, const TileStart& start,
                        const TileSink& sink);

}  // namespace lathe::cpu
