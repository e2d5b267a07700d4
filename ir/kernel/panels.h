#pragma once

#include "ir/kernel/builder.h"

namespace lathe::kernel {

/// Where the 8 elements from `element` on, a multiple of 8, of a line of a panel begin: panel_place of values.
inline Value panel_place(Builder& b, Value line, Value element) {
  constexpr int piece = 8;
  return line * panel_side + b.apply(ScalarOp::bit_xor, {element / piece, line % piece}) * piece;
}

}  // namespace lathe::kernel
