#pragma once

#include "models/import/ops/signal/fourier.h"

namespace lathe::pt2 {

/// Returns the parts of complex numbers; integers as floats, without an imaginary part.
importing::Signal signal_of(const Tensor& x);

/// Returns complex numbers.
Tensor complex_of(const importing::Signal& x);

/// Applies a function to both parts.
importing::Signal each_part(const importing::Signal& x, const auto& function) {
  return {function(x.real), x.imaginary.is_empty() ? Tensor() : function(x.imaginary)};
}

/// Returns a product, linear in both of its operands, of complex numbers: that of the parts of each.
Tensor complex_product(const Tensor& a, const Tensor& b, const auto& product) {
  const importing::Signal x = signal_of(a), y = signal_of(b);
  return complex_of({product(x.real, y.real) - product(x.imaginary, y.imaginary),
                     product(x.real, y.imaginary) + product(x.imaginary, y.real)});
}

/// Moves an axis to the end, or back.
inline importing::Signal with_axis_last(const importing::Signal& x, int axis) {
  return each_part(x, [&](const Tensor& part) { return part.transpose(axis, -1); });
}

}  // namespace lathe::pt2
