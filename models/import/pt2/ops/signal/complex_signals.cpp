#include "models/import/pt2/ops/signal/complex_signals.h"

#include "models/import/pt2/ops/aten_functions.h"

namespace lathe::pt2 {

importing::Signal signal_of(const Tensor& x) {
  if (!is_complex(x.dtype())) return {x.to(float_of(x.dtype())), {}};
  const Tensor parts = view_as_real(x);
  return {parts.select(-1, 0), parts.select(-1, 1)};
}

Tensor complex_of(const importing::Signal& x) {
  const Tensor imaginary = x.imaginary.is_empty() ? zeros_like(x.real) : x.imaginary;
  return view_as_complex(stack({x.real, imaginary}, -1));
}

}  // namespace lathe::pt2
