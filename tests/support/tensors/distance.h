#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/support/tensors/complex_elements.h"
#include "ir/support/tensors/host_tensor.h"

namespace lathe::ir::test {

/// Returns the largest difference, relative to the larger of 1 and the value; infinite if dtypes, shapes or NaNs
/// differ.
inline double distance(const HostTensor& a, const HostTensor& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return infinity;
  double worst = 0;
  const auto part = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? 0 : infinity;
    return x == y ? 0 : std::fabs(x - y) / std::max({1.0, std::fabs(x), std::fabs(y)});
  };
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const auto x = get_complex(a, i), y = get_complex(b, i);
    worst = std::max({worst, part(x.real(), y.real()), part(x.imag(), y.imag())});
  }
  return worst;
}

}  // namespace lathe::ir::test
