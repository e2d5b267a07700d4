#pragma once

#include "ir/kernel/builder.h"

/// Panels in shared memory: 64 lines of 64 elements (128 bytes), in each of which chunks of 16 bytes are swapped, as
/// the 128-byte swizzle of warpgroup products and of copies by TMA has them.
namespace lathe::kernel {

inline constexpr int panel_side = 64;
inline constexpr int panel_elements = panel_side * panel_side;
inline constexpr int panel_alignment = 1024;  ///< bytes

/// The place of an element in its panel.
constexpr int panel_place(int line, int element) {
  constexpr int chunk = 8;
  return line * panel_side + ((element / chunk) ^ (line % chunk)) * chunk + element % chunk;
}

/// Where the 8 elements from `element` on, a multiple of 8, of a line of a panel begin: panel_place of values.
inline Value panel_place(Builder& b, Value line, Value element) {
  constexpr int chunk = 8;
  return line * panel_side + b.apply(ScalarOp::bit_xor, {element / chunk, line % chunk}) * chunk;
}

}  // namespace lathe::kernel
