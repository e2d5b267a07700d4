#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe::test {

/// Returns f64 sin(scale), sin(2 scale), ..: values without a pattern that a bug could preserve.
inline HostTensor sines(std::vector<std::int64_t> shape, double scale) {
  HostTensor made(f64, std::move(shape));
  for (std::int64_t i = 0; i < made.numel(); ++i) made.set(i, std::sin(scale * static_cast<double>(i + 1)));
  return made;
}

}  // namespace lathe::test
