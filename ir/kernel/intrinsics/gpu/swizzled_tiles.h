#pragma once

#include "ir/kernel/build/builder.h"

/// Tiles in shared memory: 64 rows of 64 elements (128 bytes). Chunks of 16 bytes within a row are permuted by the
/// 128-byte swizzle of wgmma and TMA copies.
namespace lathe::kernel {

inline constexpr int swizzle_side = 64;
inline constexpr int swizzled_elements = swizzle_side * swizzle_side;
inline constexpr int swizzle_alignment = 1024;  ///< bytes

/// Returns the offset of an element in its tile.
constexpr int swizzled_offset(int row, int element) {
  constexpr int chunk = 8;
  return row * swizzle_side + ((element / chunk) ^ (row % chunk)) * chunk + element % chunk;
}

/// Emits the swizzled offset of the 8 elements that start at `element`, a multiple of 8.
inline Value swizzled_offset(Builder& b, Value row, Value element) {
  constexpr int chunk = 8;
  return row * swizzle_side + b.apply(ScalarOp::bit_xor, {element / chunk, row % chunk}) * chunk;
}

}  // namespace lathe::kernel
