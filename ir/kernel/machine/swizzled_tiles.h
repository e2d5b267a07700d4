#pragma once

#include "ir/kernel/build/builder.h"

/// Tiles in shared memory: 64 rows of 64 elements (128 bytes), in each of which chunks of 16 bytes are
/// swapped, as the 128-byte swizzle of warpgroup products and of copies by TMA has them.
namespace lathe::kernel {

inline constexpr int swizzle_side = 64;
inline constexpr int swizzled_elements = swizzle_side * swizzle_side;
inline constexpr int swizzle_alignment = 1024;  ///< bytes

/// The offset of an element in its tile.
constexpr int swizzled_offset(int row, int element) {
  constexpr int chunk = 8;
  return row * swizzle_side + ((element / chunk) ^ (row % chunk)) * chunk + element % chunk;
}

/// Where the 8 elements from `element` on, a multiple of 8, of a row of a tile begin: swizzled_offset of values.
inline Value swizzled_offset(Builder& b, Value row, Value element) {
  constexpr int chunk = 8;
  return row * swizzle_side + b.apply(ScalarOp::bit_xor, {element / chunk, row % chunk}) * chunk;
}

}  // namespace lathe::kernel
