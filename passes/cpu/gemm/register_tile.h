#pragma once

#include <functional>

#include "ir/hardware/vector_registers.h"
#include "ir/kernel/build/builder.h"

namespace lathe::cpu {

/// A block of sums that stays in registers: rows x vectors of `lanes` elements.
struct RegisterTile {
  DType compute = f32;
  int lanes = 1;
  int rows = 6, vectors = 4;
};

/// Returns the number of accumulators that fit into registers together with the operands.
inline int accumulators(const VectorRegisters& vectors) { return vectors.count * 3 / 4; }

/// Broadcasts an element to every lane of the sums, or two elements to every pair of lanes.
kernel::Value in_every_lane(kernel::Builder& b, kernel::Value element, int lanes);
/// Returns sum + x * y: by one fma, in integer arithmetic, or by dot_pairs for pairs of bf16.
kernel::Value multiply_add(kernel::Builder& b, kernel::Value x, kernel::Value y, kernel::Value sum);

/// Return the factors of a tile at a step of k. If a step is a pair of bf16, both have twice as many elements.
using TileElement = std::function<kernel::Value(kernel::Value k, int row)>;    ///< a scalar
using TileVector = std::function<kernel::Value(kernel::Value k, int vector)>;  ///< `lanes` elements
/// Returns the initial sums, if the matmul continues earlier sums.
using TileStart = std::function<kernel::Value(int row, int vector)>;
/// Consumes the final sums.
using TileSink = std::function<void(int row, int vector, kernel::Value sum)>;

/// Emits sum[r][v] = start(r, v) + sum over k in lo .. hi of element(k, r) * vector(k, v), k ascending, one
/// multiply_add per step. With an empty start, sums begin at zero.
void emit_register_tile(kernel::Builder& b, const RegisterTile& tile, kernel::Value lo, kernel::Value hi,
                        const TileElement& element, const TileVector& vector, const TileStart& start,
                        const TileSink& sink);

}  // namespace lathe::cpu
