#pragma once

#include "models/import/pt2/ops/aten_functions.h"

namespace lathe::pt2 {

/// Reduces the axes in the argument `dim`, all of them without it: reduce(x, axes, keepdim). A tensor without dims is
/// reduced as one element.
Tensor reduced(const OpCall& call, const Tensor& x, const auto& reduce) {
  const Tensor source = x.rank() == 0 ? x.unsqueeze(0) : x;
  const Ints axes = x.rank() == 0 ? Ints{0} : axes_argument(call, "dim", x.rank());
  if (x.rank() == 0) call.ignore({"dim", "keepdim"});
  const bool keeps = x.rank() > 0 && call.flag("keepdim", false);
  return reduce(source, axes_of(axes), keeps);
}

/// Returns a tensor whose elements have an order in Lathe: bools and 8-bit integers as i32.
inline Tensor comparable(const Tensor& x) { return x.dtype() == boolean || is_byte(x.dtype()) ? x.to(i32) : x; }

}  // namespace lathe::pt2
